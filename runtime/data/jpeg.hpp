/// jpeg: decodes JPEG images.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <filesystem>
#include <span>
namespace mneme {

/// [3, H, W] uint8, red, green and blue, as Pillow's `convert("RGB")` has them. A gray image has three equal planes.
/// The four inks of CMYK and YCCK are read as inverted, which is how Adobe's programs and Pillow write them. EXIF
/// orientation has no effect. Deviations from the standard after which libjpeg still decodes every sample are accepted.
/// Fails if an image is damaged, truncated, of an unsupported kind or larger than `pixels_max`. The size is checked
/// before memory is allocated. @param file named by errors
[[nodiscard]] expected<at::Tensor> decode_jpeg(std::span<const std::uint8_t> bytes, const std::filesystem::path& file,
                                               std::int64_t pixels_max);

} // namespace mneme
