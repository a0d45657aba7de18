/// tensor_exchange: lets archives replace tensors that both sides have by digests, so that each is sent once.
#pragma once
#include "runtime/base/digest.hpp"
#include <optional>
#include <stdexcept>
#include <string>
namespace mneme {

/// Error while loading. The text continues a sentence whose subject is the archive: "ends early".
class archive_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Runs `read`. Returns the message of its archive_error; empty if it does not throw.
template <class Read>
[[nodiscard]] std::string archive_damage(Read&& read) {
  try {
    read();
    return {};
  } catch (const archive_error& error) {
    return error.what();
  }
}

class tensor_exchange {
public:
  virtual ~tensor_exchange() = default;
  struct offered_tensor {
    digest128 name{};
    bool is_new = false; ///< The reader does not have it: its content follows.
  };
  /// Saving: digest of an immutable tensor; nullopt if the tensor is too small to be worth it.
  [[nodiscard]] virtual std::optional<offered_tensor> offer(const at::Tensor& value) = 0;
  /// Loading: caches a tensor that arrived with its digest.
  virtual void keep(const digest128& name, const at::Tensor& value) = 0;
  /// Loading: returns the tensor with a digest. Throws archive_error if there is none.
  [[nodiscard]] virtual at::Tensor find(const digest128& name) = 0;
};

} // namespace mneme
