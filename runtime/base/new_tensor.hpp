/// new_tensor: creates tensors without including ATen operator headers, which take 3 s to compile.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme {

/// Returns a contiguous CPU tensor with uninitialized values.
[[nodiscard]] at::Tensor new_tensor(at::IntArrayRef shape, at::ScalarType type);

} // namespace mneme
