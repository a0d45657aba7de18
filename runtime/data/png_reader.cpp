#include "runtime/data/png_reader.hpp"
#include "runtime/base/new_tensor.hpp"
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <fmt/format.h>
#include <png.h>
#include <span>
#include <string>
#include <string_view>
namespace mneme {
namespace {

// Axes: H height, W width.

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24U | std::uint32_t{bytes[1]} << 16U | std::uint32_t{bytes[2]} << 8U | bytes[3];
}

constexpr std::array<std::uint8_t, 12> end_chunk{0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xAE, 0x42, 0x60, 0x82};

/// Removes ancillary chunks and everything after IEND, in place. libpng would interpret ancillary chunks, or fail on
/// damaged ones. The checksum of IEND, which protects no data, is corrected. Returns an error text if the file ends
/// before IEND, else "".
std::string keep_critical_chunks(std::vector<std::uint8_t>& bytes) {
  constexpr std::size_t signature_bytes = 8, chunk_bytes = 12; // chunk_bytes: length, type and checksum of a chunk
  constexpr std::uint8_t is_ancillary = 0x20;                  // bit of a lower-case first letter, which marks an
                                                               // ancillary chunk
  std::size_t from = signature_bytes, to = signature_bytes;
  while (bytes.size() - from >= chunk_bytes) {
    const auto* const chunk = bytes.data() + from;
    const std::size_t size = chunk_bytes + big_endian(chunk);
    if (size > bytes.size() - from)
      break;
    if (std::memcmp(chunk + 4, "IEND", 4) == 0) {
      std::copy(end_chunk.begin(), end_chunk.end(), bytes.data() + to);
      bytes.resize(to + end_chunk.size());
      return {};
    }
    if ((chunk[4] & is_ancillary) == 0) {
      std::copy_n(chunk, size, bytes.data() + to);
      to += size;
    }
    from += size;
  }
  return fmt::format("the file ends after {} bytes, before the chunk IEND is complete", bytes.size());
}

/// Decodes one image: call start(), then decode() if start() returned true. Neither function may have local
/// objects with destructors, because libpng leaves them by longjmp() on errors.
class png_decoder {
public:
  /// @param bytes must outlive this object
  explicit png_decoder(std::span<const std::uint8_t> bytes)
      : bytes_(bytes), png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning)),
        info_(png_ ? png_create_info_struct(png_) : nullptr) {}
  png_decoder(const png_decoder&) = delete;
  png_decoder& operator=(const png_decoder&) = delete;
  ~png_decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }

  /// Reads the header. Returns false on failure.
  [[nodiscard]] bool start() {
    if (!info_)
      return false;
    if (setjmp(jump_) != 0)
      return false;
    png_set_read_fn(png_, this, on_read);
    png_read_info(png_, info_);
    convert_to_rgb();
    png_read_update_info(png_, info_);
    return true;
  }
  /// Decodes the pixels. Returns false on failure. @param lines [H] pointers to 3 * W bytes each
  [[nodiscard]] bool decode(png_bytepp lines) {
    if (setjmp(jump_) != 0)
      return false;
    png_read_image(png_, lines);
    png_read_end(png_, nullptr);
    return !has_wrong_checksum_;
  }
  [[nodiscard]] std::int64_t width() const { return png_get_image_width(png_, info_); }
  [[nodiscard]] std::int64_t height() const { return png_get_image_height(png_, info_); }
  [[nodiscard]] std::size_t line_bytes() const { return png_get_rowbytes(png_, info_); }
  [[nodiscard]] std::string error() const { return error_.data(); }

private:
  void convert_to_rgb() {
    const auto color = png_get_color_type(png_, info_);
    if (color == PNG_COLOR_TYPE_PALETTE)
      png_set_palette_to_rgb(png_);
    if (color == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png_, info_) < 8)
      png_set_expand_gray_1_2_4_to_8(png_);
    if (color == PNG_COLOR_TYPE_GRAY)
      png_set_scale_16(png_);
    else
      png_set_strip_16(png_);
    if ((color & PNG_COLOR_MASK_ALPHA) != 0)
      png_set_strip_alpha(png_);
    if ((color & PNG_COLOR_MASK_COLOR) == 0)
      png_set_gray_to_rgb(png_);
    png_set_interlace_handling(png_);
  }

  static png_decoder& decoder_of(png_structp png) { return *static_cast<png_decoder*>(png_get_error_ptr(png)); }
  void set_error(png_const_charp text) {
    std::string_view(text).substr(0, error_.size() - 1).copy(error_.data(), error_.size() - 1);
  }
  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    auto& decoder = decoder_of(png);
    decoder.set_error(text);
    std::longjmp(decoder.jump_, 1);
  }
  /// Turns the warning about a wrong checksum of compressed samples into an error, like Pillow and OpenCV.
  static void on_warning(png_structp png, png_const_charp text) {
    if (std::string_view(text) != "IDAT: incorrect data check")
      return;
    decoder_of(png).set_error(text);
    decoder_of(png).has_wrong_checksum_ = true;
  }
  static void on_read(png_structp png, png_bytep out, std::size_t count) {
    auto& left = static_cast<png_decoder*>(png_get_io_ptr(png))->bytes_;
    if (count > left.size())
      png_error(png, "the file is truncated");
    std::copy_n(left.data(), count, out);
    left = left.subspan(count);
  }

  std::span<const std::uint8_t> bytes_; // the unread bytes
  std::jmp_buf jump_{};
  std::array<char, 128> error_{};
  bool has_wrong_checksum_ = false;
  png_structp png_;
  png_infop info_;
};

/// Converts [H, W, 3] to [3, H, W].
at::Tensor planes_of(const std::vector<std::uint8_t>& pixels, std::int64_t height, std::int64_t width) {
  auto planes = new_tensor({3, height, width}, at::kByte);
  auto* const out = planes.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t at = 0; at < height * width; ++at)
    for (std::int64_t channel = 0; channel < 3; ++channel)
      out[channel * height * width + at] = pixels[static_cast<std::size_t>(3 * at + channel)];
  return planes;
}

} // namespace

expected<at::Tensor> decode_png(std::vector<std::uint8_t> bytes, const std::filesystem::path& file,
                                std::int64_t pixels_max) {
  const auto damaged = [&](std::string_view reason) {
    return failed(file.string(),
                  fmt::format("is a damaged or truncated PNG image ({}): write or fetch it again", reason));
  };
  if (const auto error = keep_critical_chunks(bytes); !error.empty())
    return damaged(error);
  png_decoder image(bytes);
  if (!image.start())
    return damaged(image.error());
  const auto height = image.height(), width = image.width();
  if (height * width > pixels_max)
    return failed(file.string(), fmt::format("the header states {} pixels, but images of this data set have at most {}",
                                             height * width, pixels_max));
  constexpr std::int64_t pixels_of_a_byte = 8 * 1032; // number of pixels per compressed byte at the highest
                                                      // compression, with 1-bit samples
  if (height * width > pixels_of_a_byte * std::ssize(bytes))
    return damaged(fmt::format("{} bytes do not hold {} pixels", bytes.size(), height * width));
  if (image.line_bytes() != static_cast<std::size_t>(3 * width))
    return damaged("its samples cannot be converted to RGB");
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(3 * height * width));
  std::vector<png_bytep> lines;
  for (std::int64_t y = 0; y < height; ++y)
    lines.push_back(pixels.data() + 3 * width * y);
  if (!image.decode(lines.data()))
    return damaged(image.error());
  return planes_of(pixels, height, width);
}

} // namespace mneme
