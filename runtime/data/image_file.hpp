/// image_file: reads an image file. The content determines whether it is PNG or JPEG.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <ATen/core/Tensor.h>
#include <filesystem>
namespace mneme {

/// Limit for the number of pixels of an image.
inline constexpr std::int64_t image_pixels_max = std::int64_t{1} << 27U;

/// Reads [3, H, W] uint8 (RGB), equal to Pillow's `Image.open(file).convert("RGB")`; see decode_png() and
/// decode_jpeg(). Fails if the format is unsupported, the file is damaged or truncated, or it exceeds `pixels_max`
/// pixels or 256 MiB.
[[nodiscard]] expected<at::Tensor> read_image(const std::filesystem::path& file,
                                              std::int64_t pixels_max = image_pixels_max);

/// Describes a file whose format read_image() does not support, such as "a WebP image". Returns "" if the format is
/// supported or the file cannot be opened.
[[nodiscard]] std::string unsupported_format(const std::filesystem::path& file);

} // namespace mneme
