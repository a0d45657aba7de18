/// png_picture: the pixels of one PNG file.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <ATen/core/Tensor.h>
#include <filesystem>
namespace mneme {

/// [3, H, W] uint8, red, green and blue, of any kind of PNG: grey has three equal planes, palettes are looked up, 16
/// bits a sample become 8, and what is transparent lies on white. Fails on a file that is no PNG, cut short or damaged,
/// or larger than `pixels_max`; the size is checked before memory is taken.
[[nodiscard]] expected<at::Tensor> read_png(const std::filesystem::path& file, std::int64_t pixels_max);

} // namespace mneme
