/// jpeg: the pixels of one JPEG file.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <ATen/core/Tensor.h>
#include <filesystem>
namespace mneme {

/// [3, H, W] uint8, red, green and blue; a grey picture has three equal planes. With `shorter_side_min_px` above 0 a
/// larger picture may come at k eighths of its size, the smallest whose sides are not below that: decoding is faster,
/// and averages instead of leaving pixels out. Fails on a file that is no JPEG, cut short or damaged, larger than 2^27
/// pixels, or in the four colours of printers; sizes are checked before memory is taken.
[[nodiscard]] expected<at::Tensor> read_jpeg(const std::filesystem::path& file, std::int64_t shorter_side_min_px);

} // namespace mneme
