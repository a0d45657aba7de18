/// l2_normalize: scales vectors along the last axis to length 1.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme {

/// Differentiable by autograd. Norms below 1e-12 count as 1e-12, as in PyTorch.
[[nodiscard]] at::Tensor l2_rows(const at::Tensor& rows);

} // namespace mneme
