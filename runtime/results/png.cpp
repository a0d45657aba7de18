#include "runtime/results/png.hpp"
#include "runtime/base/check.hpp"
#include <zlib.h>
namespace mneme {
namespace {

std::string word(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>(value >> shift & 0xFFU);
  return bytes;
}

/// A chunk: length, name, content, and checksum of name and content (PNG specification, section 5.3).
std::string chunk(const std::string& name, const std::string& content) {
  const auto body = name + content;
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return word(static_cast<std::uint32_t>(content.size())) + body + word(static_cast<std::uint32_t>(sum));
}

std::string deflated(const std::string& plain) {
  auto size = compressBound(plain.size());
  std::string packed(size, '\0');
  const auto status = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                                reinterpret_cast<const Bytef*>(plain.data()), plain.size(), Z_BEST_COMPRESSION);
  MNEME_CHECK(status == Z_OK, status);
  packed.resize(size);
  return packed;
}

} // namespace

std::string png_bytes(const at::Tensor& picture) {
  MNEME_CHECK(picture.dim() == 3 && picture.scalar_type() == at::kByte && picture.numel() > 0, picture.sizes());
  const auto channels = picture.size(0), height = picture.size(1), width = picture.size(2);
  MNEME_CHECK(channels == 1 || channels == 3, channels);
  const auto rows = picture.permute({1, 2, 0}).contiguous(); // [H, W, channels]
  const auto* const bytes = reinterpret_cast<const char*>(rows.const_data_ptr<std::uint8_t>());
  std::string lines;
  for (std::int64_t y = 0; y < height; ++y) {
    lines += '\0'; // filter type of the line
    lines.append(bytes + y * width * channels, static_cast<std::size_t>(width * channels));
  }
  constexpr char grey = 0, colour = 2;
  const std::string form{8, channels == 1 ? grey : colour, 0, 0, 0};
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", word(static_cast<std::uint32_t>(width)) + word(static_cast<std::uint32_t>(height)) + form) +
         chunk("IDAT", deflated(lines)) + chunk("IEND", "");
}

} // namespace mneme
