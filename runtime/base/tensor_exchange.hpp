/// tensor_exchange: lets archives send digests in place of tensors that both sides hold, so that each tensor is sent
/// once.
#pragma once
#include "runtime/base/digest.hpp"
#include <optional>
#include <stdexcept>
#include <string>
namespace mneme {

/// Error while loading. Its text is the predicate of a sentence about the archive, such as "ends early".
class archive_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Calls read(). Returns the message of its archive_error; "" if it does not throw.
template <class Read>
[[nodiscard]] std::string archive_error_of(Read&& read) {
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
    bool is_new = false; ///< True: the reader does not hold the tensor, so its content follows.
  };
  /// Saving: returns the digest of an immutable tensor, or nullopt if the tensor is too small to exchange.
  [[nodiscard]] virtual std::optional<offered_tensor> offer(const at::Tensor& value) = 0;
  /// Loading: caches a tensor that was received with its digest.
  virtual void keep(const digest128& name, const at::Tensor& value) = 0;
  /// Loading: returns the tensor with this digest. Throws archive_error if there is none.
  [[nodiscard]] virtual at::Tensor find(const digest128& name) = 0;
};

} // namespace mneme
