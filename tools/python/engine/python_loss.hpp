/// python_loss: loss written in Python, with gradients by torch's autograd, computed one model at a time.
#pragma once
#include "runtime/method/differentiable_loss.hpp"
#include <nanobind/nanobind.h>
namespace mneme {

namespace nb = nanobind;

/// Base class that holds the name, because differentiable_loss keeps a pointer to its text.
struct python_loss_name {
  std::string name_;
};

/// `function(logits [R, C], labels [R])` returns the loss of each row [R]. Padded rows are not passed.
class python_loss final : private python_loss_name, public differentiable_loss {
public:
  /// @param identity losses with equal identities are the same and may share a batch
  python_loss(nb::object function, std::string name, const std::string& identity);
  ~python_loss() override;
  python_loss(const python_loss&) = delete;
  python_loss& operator=(const python_loss&) = delete;
  [[nodiscard]] const nb::object& function() const noexcept { return function_; }

private:
  [[nodiscard]] std::vector<at::Tensor> row_values(const loss_rows& in) const;

  nb::object function_;
};

} // namespace mneme
