/// unit_rows: rows of length 1, and what gradients by them are to the rows themselves.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme {

/// PyTorch's bound on norms: vectors shorter than 1e-12 are divided by that.
struct unit_rows {
  at::Tensor rows{};  ///< [n, D] of length 1
  at::Tensor norms{}; ///< [n, 1]
};
[[nodiscard]] unit_rows unit_rows_of(const at::Tensor& whole);
/// What reaches the rows themselves of the gradient of their unit vectors, [n, D].
[[nodiscard]] at::Tensor through_unit(const unit_rows& rows, const at::Tensor& d_unit);
/// Unit vectors along the last axis, by operators that autograd follows.
[[nodiscard]] at::Tensor directions_of(const at::Tensor& rows);

} // namespace mneme
