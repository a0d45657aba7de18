#include "runtime/data/jpeg.hpp"
#include "runtime/base/new_tensor.hpp"
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio> // must precede jpeglib.h, which does not include it
#include <fmt/format.h>
#include <jpeglib.h>
#include <string_view>
#include <vector>

#include <jerror.h>
namespace mneme {
namespace {

// Axes: H height, W width.

/// Collects errors and warnings of libjpeg, whose default handler exits the process.
struct reporter {
  jpeg_error_mgr base{};
  std::jmp_buf jump{};
  std::array<char, JMSG_LENGTH_MAX> text{};
};

reporter& reporter_of(j_common_ptr info) { return *reinterpret_cast<reporter*>(info->err); }

[[noreturn]] void on_error(j_common_ptr info) {
  info->err->format_message(info, reporter_of(info).text.data());
  std::longjmp(reporter_of(info).jump, 1);
}

/// Warnings that do not affect samples: unusual headers, and bytes between two segments.
bool is_harmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
         code == JWRN_NOT_SEQUENTIAL || code == JWRN_BOGUS_PROGRESSION;
}

/// Handles a message of libjpeg. @param level negative for a warning
void on_message(j_common_ptr info, int level) {
  if (level < 0 && !is_harmless(info->err->msg_code))
    on_error(info);
}

/// True for errors that indicate an unsupported kind of JPEG instead of damage.
bool is_unsupported(int code) {
  return code == JERR_BAD_PRECISION || code == JERR_CONVERSION_NOTIMPL || code == JERR_SOF_UNSUPPORTED ||
         code == JERR_ARITH_NOTIMPL || code == JERR_NOT_COMPILED || code == JERR_CCIR601_NOTIMPL ||
         code == JERR_FRACT_SAMPLE_NOTIMPL || code == JERR_COMPONENT_COUNT;
}

constexpr int scans_max = 100;
constexpr std::int64_t scanned_pixels_max = std::int64_t{3} << 29U; // limit over all scans, equal to twelve images of
                                                                    // maximum size

/// Limits the work for a progressive file, which can encode the same pixels again in every scan of a few bytes.
void limit_scans(j_common_ptr info) {
  const auto& image = *reinterpret_cast<const jpeg_decompress_struct*>(info);
  const auto pixels = static_cast<std::int64_t>(image.image_width) * image.image_height;
  if (image.input_scan_number > scans_max || image.input_scan_number * pixels > scanned_pixels_max) {
    constexpr std::string_view reason = "it has more scans than an image needs";
    std::copy(reason.begin(), reason.end(), reporter_of(info).text.begin());
    std::longjmp(reporter_of(info).jump, 1);
  }
}

/// Returns a * b / 255 for bytes, rounded like Pillow.
std::uint32_t scaled(std::uint32_t a, std::uint32_t b) {
  const auto product = a * b + 128;
  return ((product >> 8U) + product) >> 8U;
}

/// Returns one of the channels red, green and blue from inverted inks, by Pillow's conversion from CMYK.
/// @param inks [4] cyan, magenta, yellow, black
std::uint8_t light_of(const std::uint8_t* inks, std::int64_t channel) {
  const std::uint32_t black = inks[3], ink = 255U - inks[channel];
  return static_cast<std::uint8_t>(black - std::min(scaled(ink, black), black));
}

/// Decodes one image: call start(), then decode() if start() returned true. Both functions must not have local objects
/// with destructors, because libjpeg leaves them by longjmp() on errors.
class decoder {
public:
  decoder() {
    info_.err = jpeg_std_error(&reports_.base);
    reports_.base.error_exit = on_error;
    reports_.base.emit_message = on_message;
  }
  decoder(const decoder&) = delete;
  decoder& operator=(const decoder&) = delete;
  ~decoder() { jpeg_destroy_decompress(&info_); }

  /// Reads the header. Returns false on failure.
  [[nodiscard]] bool start(std::span<const std::uint8_t> bytes) {
    if (setjmp(reports_.jump) != 0)
      return false;
    jpeg_create_decompress(&info_);
    watch_.progress_monitor = limit_scans;
    info_.progress = &watch_;
    jpeg_mem_src(&info_, bytes.data(), bytes.size());
    jpeg_read_header(&info_, TRUE);
    const bool has_inks = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = has_inks ? JCS_CMYK : JCS_RGB;
    info_.dct_method = JDCT_ISLOW; // this method gives the same pixels on every machine
    jpeg_calc_output_dimensions(&info_);
    return true;
  }

  /// Decodes the pixels. Returns false on failure. @param line buffer [W * channels()] @param planes output [3, H, W]
  [[nodiscard]] bool decode(std::uint8_t* line, std::uint8_t* planes) {
    if (setjmp(reports_.jump) != 0)
      return false;
    jpeg_start_decompress(&info_);
    const bool has_inks = channels() == 4;
    while (info_.output_scanline < info_.output_height) {
      std::uint8_t* const out = planes + static_cast<std::int64_t>(info_.output_scanline) * width();
      jpeg_read_scanlines(&info_, &line, 1);
      for (std::int64_t x = 0; x < width(); ++x)
        for (std::int64_t channel = 0; channel < 3; ++channel)
          out[channel * width() * height() + x] = has_inks ? light_of(line + 4 * x, channel) : line[3 * x + channel];
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  [[nodiscard]] std::int64_t width() const { return info_.output_width; }
  [[nodiscard]] std::int64_t height() const { return info_.output_height; }
  /// Number of components of a decoded pixel.
  [[nodiscard]] std::int64_t channels() const { return info_.out_color_components; }
  [[nodiscard]] bool failed_as_unsupported() const { return is_unsupported(reports_.base.msg_code); }
  [[nodiscard]] std::string error() const { return reports_.text.data(); }

private:
  reporter reports_{};
  jpeg_progress_mgr watch_{};
  jpeg_decompress_struct info_{};
};

} // namespace

expected<at::Tensor> decode_jpeg(std::span<const std::uint8_t> bytes, const std::filesystem::path& file,
                                 std::int64_t pixels_max) {
  decoder image;
  const auto error_of_image = [&] {
    if (image.failed_as_unsupported())
      return failed(file.string(), fmt::format("is a JPEG image of a kind that is not supported ({}): convert it to "
                                               "PNG, or to JPEG of 8 bits",
                                               image.error()));
    return failed(file.string(),
                  fmt::format("is a damaged or truncated JPEG image ({}): write or fetch it again", image.error()));
  };
  if (!image.start(bytes))
    return error_of_image();
  if (image.height() * image.width() > pixels_max)
    return failed(file.string(), fmt::format("the header states {} pixels, but images of this data set have at most {}",
                                             image.height() * image.width(), pixels_max));
  auto planes = new_tensor({3, image.height(), image.width()}, at::kByte);
  std::vector<std::uint8_t> line(static_cast<std::size_t>(image.channels() * image.width()));
  if (!image.decode(line.data(), planes.mutable_data_ptr<std::uint8_t>()))
    return error_of_image();
  return planes;
}

} // namespace mneme
