/// A new tensor of a shape, for sources that do not otherwise read ATen's operators (3 s each to compile).
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme {

/// On the CPU, contiguous, its values not set.
[[nodiscard]] at::Tensor new_tensor(at::IntArrayRef shape, at::ScalarType type);

} // namespace mneme
