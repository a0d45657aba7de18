/// resize: resizes images in exact integer arithmetic.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme {

/// Bilinear, corners not aligned (as PyTorch with align_corners=false, no antialiasing): [N, C, H, W]
/// uint8 -> [N, C, height, width] uint8. Weights are fractions and sums integers, so results are exact
/// and a half rounds up, on every machine.
[[nodiscard]] at::Tensor resized_bilinear(const at::Tensor& images, std::int64_t height, std::int64_t width);

} // namespace mneme
