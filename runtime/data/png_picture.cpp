#include "runtime/data/png_picture.hpp"
#include "runtime/base/new_tensor.hpp"
#include "runtime/data/picture_bytes.hpp"
#include <fmt/format.h>
#include <png.h>
#include <string_view>
namespace mneme {
namespace {

/// libpng's own simple interface, which ends no program and needs no jumps.
class png_decoder {
public:
  png_decoder() { image_.version = PNG_IMAGE_VERSION; }
  png_decoder(const png_decoder&) = delete;
  png_decoder& operator=(const png_decoder&) = delete;
  ~png_decoder() { png_image_free(&image_); }

  /// Reads the header.
  [[nodiscard]] bool start(const std::vector<std::uint8_t>& bytes) {
    const bool done = png_image_begin_read_from_memory(&image_, bytes.data(), bytes.size()) != 0;
    image_.format = PNG_FORMAT_RGB;
    return done;
  }
  /// @param pixels [H * W * 3]
  [[nodiscard]] bool decode(std::vector<std::uint8_t>& pixels) {
    const png_color white{255, 255, 255};
    return png_image_finish_read(&image_, &white, pixels.data(), 0, nullptr) != 0 && image_.warning_or_error == 0;
  }
  [[nodiscard]] std::int64_t width() const { return image_.width; }
  [[nodiscard]] std::int64_t height() const { return image_.height; }
  [[nodiscard]] std::string_view why() const { return image_.message; }

private:
  png_image image_{};
};

} // namespace

expected<at::Tensor> read_png(const std::filesystem::path& file, std::int64_t pixels_max) {
  const auto bytes = picture_bytes(file);
  if (!bytes)
    return tl::unexpected(bytes.error());
  const auto damaged = [&](std::string_view why) {
    return failed(file.string(), fmt::format("is no whole PNG file ({}): is it damaged? Write or fetch it again", why));
  };
  png_decoder image;
  if (!image.start(*bytes))
    return damaged(image.why());
  const auto height = image.height(), width = image.width();
  if (height * width > pixels_max)
    return failed(file.string(),
                  fmt::format("the header states {} pixels, but pictures of this data set have at most {}",
                              height * width, pixels_max));
  constexpr std::int64_t pixels_of_a_byte = 8 * 1032; // packed as well as can be, a bit each
  if (height * width > pixels_of_a_byte * std::ssize(*bytes))
    return damaged(fmt::format("{} bytes do not hold {} pixels", bytes->size(), height * width));
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(3 * height * width));
  if (!image.decode(pixels))
    return damaged(image.why());
  auto planes = new_tensor({3, height, width}, at::kByte);
  auto* const place = planes.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t at = 0; at < height * width; ++at)
    for (std::int64_t channel = 0; channel < 3; ++channel)
      place[channel * height * width + at] = pixels[static_cast<std::size_t>(3 * at + channel)];
  return planes;
}

} // namespace mneme
