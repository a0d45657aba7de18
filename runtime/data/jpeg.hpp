/// jpeg: decodes JPEG images.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <filesystem>
#include <span>
namespace mneme {

/// Decodes to [3, H, W] uint8 (RGB), equal to Pillow's `convert("RGB")`. Gray images give three equal planes. CMYK and
/// YCCK are read with inverted inks, as written by Adobe's programs and Pillow. EXIF orientation is ignored. Deviations
/// from the standard are accepted if libjpeg still decodes every sample. Fails if the image is damaged, truncated, of
/// an unsupported kind or larger than `pixels_max`. The size is checked before memory is allocated.
/// @param file path for messages
[[nodiscard]] expected<at::Tensor> decode_jpeg(std::span<const std::uint8_t> bytes, const std::filesystem::path& file,
                                               std::int64_t pixels_max);

} // namespace mneme
