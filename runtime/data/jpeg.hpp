/// jpeg: the pixels of one JPEG file.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <ATen/core/Tensor.h>
#include <filesystem>
namespace mneme {

/// No photograph of a data set has so many pixels.
inline constexpr std::int64_t photograph_pixels_max = std::int64_t{1} << 27U;

/// [3, H, W] uint8, red, green and blue; a grey picture has three equal planes. With `shorter_side_min_px` above 0 a
/// larger picture may come at k eighths of its size, the smallest whose sides are not below that: decoding is faster,
/// and averages instead of leaving pixels out. Fails on a file that is no JPEG, cut short or damaged, larger than
/// `pixels_max`, or in the four colours of printers; sizes are checked before memory is taken.
[[nodiscard]] expected<at::Tensor> read_jpeg(const std::filesystem::path& file, std::int64_t shorter_side_min_px,
                                             std::int64_t pixels_max = photograph_pixels_max);

} // namespace mneme
