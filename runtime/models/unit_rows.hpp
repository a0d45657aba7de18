/// unit_rows: vectors along the last axis, scaled to length 1.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme {

/// By operators that autograd follows; vectors shorter than 1e-12 are divided by that, as PyTorch does.
[[nodiscard]] at::Tensor unit_rows(const at::Tensor& rows);

} // namespace mneme
