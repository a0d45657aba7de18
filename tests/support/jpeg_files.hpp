/// jpeg_files: small JPEG files written by tests.
#pragma once
#include <array>
#include <cstdint>
#include <cstdio> // before jpeglib.h, which needs it without including it
#include <cstdlib>
#include <jpeglib.h>
#include <string>
#include <vector>
namespace mneme::test {

/// Content of a file: one color on the left half, another on the right.
struct made_jpeg {
  unsigned width = 64, height = 64;
  std::array<std::uint8_t, 4> left{}, right{}; ///< RGB, gray, or CMYK.
  J_COLOR_SPACE colors = JCS_RGB;
  std::vector<jpeg_scan_info> scans{}; ///< Scans of a progressive file.
};

inline std::string jpeg_of(const made_jpeg& image) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&info, &bytes, &count);
  info.image_width = image.width;
  info.image_height = image.height;
  info.input_components = image.colors == JCS_RGB ? 3 : image.colors == JCS_CMYK ? 4 : 1;
  info.in_color_space = image.colors;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  if (!image.scans.empty()) {
    info.scan_info = image.scans.data();
    info.num_scans = static_cast<int>(image.scans.size());
  }
  jpeg_start_compress(&info, TRUE);
  std::vector<std::uint8_t> line;
  for (unsigned x = 0; x < image.width; ++x)
    for (int channel = 0; channel < info.input_components; ++channel)
      line.push_back((2 * x < image.width ? image.left : image.right)[static_cast<std::size_t>(channel)]);
  for (unsigned y = 0; y < image.height; ++y) {
    auto* row = line.data();
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string file(reinterpret_cast<const char*>(bytes), count);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return file;
}

} // namespace mneme::test
