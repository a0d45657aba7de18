/// png_files: small PNG files written by tests.
#pragma once
#include <cstdint>
#include <png.h>
#include <string>
#include <vector>
namespace mneme::test {

/// Content of a PNG file. @param samples [height * width * channels], with the channels of `format` (PNG_FORMAT_RGB,
/// PNG_FORMAT_GRAY, ...)
inline std::string png_of(unsigned width, unsigned height, unsigned format, const std::vector<std::uint8_t>& samples) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, samples.data(), 0, nullptr);
  std::string bytes(size, '\0');
  png_image_write_to_memory(&image, bytes.data(), &size, 0, samples.data(), 0, nullptr);
  bytes.resize(size);
  return bytes;
}

/// A uniform gray image.
inline std::string gray_png(std::uint8_t level, unsigned width, unsigned height) {
  return png_of(width, height, PNG_FORMAT_GRAY, std::vector<std::uint8_t>(std::size_t{width} * height, level));
}

} // namespace mneme::test
