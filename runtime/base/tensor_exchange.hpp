/// tensor_exchange: tensors that the writer and the reader of archives both have, so that each crosses once.
#pragma once
#include "runtime/base/digest.hpp"
#include <optional>
#include <stdexcept>
#include <string>
namespace mneme {

/// What was saved cannot be read back as what is asked for. The text goes on after "it": "ends early".
class archive_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// What is wrong with the bytes that `read` reads; "": nothing.
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
  /// Saving: the name of a frozen tensor; nothing where it is too small to be worth one.
  [[nodiscard]] virtual std::optional<offered_tensor> offer(const at::Tensor& value) = 0;
  /// Loading: a tensor that has come with its name.
  virtual void keep(const digest128& name, const at::Tensor& value) = 0;
  /// Loading: a tensor of which only the name has come. Throws archive_error if there is none.
  [[nodiscard]] virtual at::Tensor find(const digest128& name) = 0;
};

} // namespace mneme
