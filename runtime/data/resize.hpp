/// resize: resizes images in exact integer arithmetic.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme {

/// Bilinear, corners not aligned (PyTorch with align_corners=false, no antialiasing): [N, C, H, W] uint8 -> [N, C,
/// height, width] uint8. Integer arithmetic: results are exact, halves round up, and every machine gives the same
/// bytes.
[[nodiscard]] at::Tensor resized_bilinear(const at::Tensor& images, std::int64_t height, std::int64_t width);

} // namespace mneme
