/// png_reader: decodes PNG images.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <ATen/core/Tensor.h>
#include <filesystem>
#include <vector>
namespace mneme {

/// Decodes every kind of PNG to [3, H, W] uint8 (RGB), with the same result as Pillow and OpenCV:
/// - Samples of 1, 2 and 4 bits are scaled to [0, 255]. Palettes are resolved.
/// - 16-bit samples with color or alpha keep their upper byte. A 16-bit gray sample v becomes round(v / 257).
/// - Alpha and transparent colors are dropped, not blended.
/// - Ancillary chunks (gAMA, iCCP, sRGB, text, EXIF orientation, ...) are ignored, even if damaged.
/// Fails if an image is damaged, truncated or larger than `pixels_max`. The size is checked before memory is allocated.
/// @param bytes content of the file, which is modified @param file path for messages
[[nodiscard]] expected<at::Tensor> decode_png(std::vector<std::uint8_t> bytes, const std::filesystem::path& file,
                                              std::int64_t pixels_max);

} // namespace mneme
