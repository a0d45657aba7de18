/// row_cosine: cosines of the rows of two matrices, and their gradients.
#pragma once
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
namespace mneme {

/// cos(z, y) of each row, and its gradient by z: y / (|z| |y|) - cos z / |z|^2. A row shorter than 1e-8 has no
/// direction, and no gradient.
struct row_cosine {
  at::Tensor value{}; // [B, 1]
  at::Tensor slope{}; // [B, D]
  /// @param z, y [B, D]
  row_cosine(const at::Tensor& z, const at::Tensor& y) {
    constexpr double length_min = 1e-8;
    const auto of_z = z.norm(2, 1, true), long_z = of_z.clamp_min(length_min);
    const auto long_y = y.norm(2, 1, true).clamp_min(length_min);
    value = (z / long_z * (y / long_y)).sum(1, true);
    slope = ((y / long_y - value * (z / long_z)) / long_z).masked_fill(of_z <= length_min, 0.0);
  }
};

} // namespace mneme
