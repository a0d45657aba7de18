#include "runtime/results/png.hpp"
#include "runtime/base/check.hpp"
#include <png.h>
namespace mneme {

std::string png_bytes(const at::Tensor& pixels) {
  MNEME_CHECK(pixels.dim() == 3 && pixels.scalar_type() == at::kByte && pixels.numel() > 0, pixels.sizes());
  const auto channels = pixels.size(0);
  MNEME_CHECK(channels == 1 || channels == 3, channels);
  const auto rows = pixels.permute({1, 2, 0}).contiguous(); // [H, W, channels]
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(pixels.size(1));
  image.width = static_cast<png_uint_32>(pixels.size(2));
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = bytes.size();
  const int written = png_image_write_to_memory(&image, bytes.data(), &size, 0, rows.const_data_ptr(), 0, nullptr);
  MNEME_CHECK(written != 0, std::string(image.message));
  bytes.resize(size);
  return bytes;
}

} // namespace mneme
