/// image_file: reads an image file; PNG or JPEG is detected by content.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <ATen/core/Tensor.h>
#include <filesystem>
namespace mneme {

/// Largest image of a data set.
inline constexpr std::int64_t image_pixels_max = std::int64_t{1} << 27U;

/// [3, H, W] uint8 (RGB), equal to Pillow's `Image.open(file).convert("RGB")`; see decode_png() and decode_jpeg().
/// Fails if the file has another format (named in the message), is damaged or truncated, has more than `pixels_max`
/// pixels, or more than 256 MiB.
[[nodiscard]] expected<at::Tensor> read_image(const std::filesystem::path& file,
                                              std::int64_t pixels_max = image_pixels_max);

/// Describes the content of a file whose format read_image() does not support, "a WebP image"; "" if the format is
/// supported or the file cannot be opened.
[[nodiscard]] std::string unsupported_format(const std::filesystem::path& file);

} // namespace mneme
