/// resize: resizes images in exact integer arithmetic.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme {

/// Bilinear resizing, [N, C, H, W] uint8 -> [N, C, height, width] uint8, as in PyTorch with align_corners=false and
/// without antialiasing. The arithmetic is exact, so results are the same on every machine. Halves are rounded up.
[[nodiscard]] at::Tensor resize_bilinear(const at::Tensor& images, std::int64_t height, std::int64_t width);

} // namespace mneme
