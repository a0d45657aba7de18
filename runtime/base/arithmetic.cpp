#include "runtime/base/arithmetic.hpp"
#include <cstdlib>
#include <string_view>
namespace mneme {

bool is_portable() {
  static const bool portable = [] {
    const char* const said = std::getenv(arithmetic_variable);
    return said != nullptr && std::string_view(said) == portable_word;
  }();
  return portable;
}

} // namespace mneme
