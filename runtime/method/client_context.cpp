#include "runtime/method/client_context.hpp"
namespace mneme {

const tensor_map& client_context::memory() const noexcept {
  static const tensor_map nothing;
  return assigned_.memory ? *assigned_.memory : nothing;
}

} // namespace mneme
