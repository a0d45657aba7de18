#include "runtime/data/jpeg.hpp"
#include "runtime/base/new_tensor.hpp"
#include "runtime/data/picture_bytes.hpp"
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio> // before jpeglib.h, which needs it without including it
#include <fmt/format.h>
#include <jpeglib.h>
#include <string_view>
#include <vector>

#include <jerror.h>
namespace mneme {
namespace {

// Axes: H height, W width.

/// What libjpeg calls instead of ending the program.
struct reporter {
  jpeg_error_mgr base{};
  std::jmp_buf out{};
  std::array<char, JMSG_LENGTH_MAX> text{};
};

reporter& reporter_of(j_common_ptr info) { return *reinterpret_cast<reporter*>(info->err); }

[[noreturn]] void give_up(j_common_ptr info) {
  info->err->format_message(info, reporter_of(info).text.data());
  std::longjmp(reporter_of(info).out, 1);
}

/// libjpeg would go on after an error in the data, and make pixels up.
void note(j_common_ptr info, int level) {
  const auto code = info->err->msg_code;
  const bool harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR;
  if (level < 0 && !harmless)
    give_up(info);
}

constexpr int scans_max = 100;
constexpr std::int64_t scanned_pixels_max = std::int64_t{3} << 29U; // of all scans: a dozen of the largest picture

/// A progressive file may say the same pixels again and again, each time in a few bytes.
void limit_scans(j_common_ptr info) {
  const auto& picture = *reinterpret_cast<const jpeg_decompress_struct*>(info);
  const auto pixels = static_cast<std::int64_t>(picture.image_width) * picture.image_height;
  if (picture.input_scan_number > scans_max || picture.input_scan_number * pixels > scanned_pixels_max) {
    constexpr std::string_view why = "it has more scans than a picture needs";
    std::copy(why.begin(), why.end(), reporter_of(info).text.begin());
    std::longjmp(reporter_of(info).out, 1);
  }
}

/// One picture: start(), then, if that went well, decode(). No object with a destructor lives in these two: errors
/// leave them by a jump.
class decoder {
public:
  decoder() {
    info_.err = jpeg_std_error(&reports_.base);
    reports_.base.error_exit = give_up;
    reports_.base.emit_message = note;
  }
  decoder(const decoder&) = delete;
  decoder& operator=(const decoder&) = delete;
  ~decoder() { jpeg_destroy_decompress(&info_); }

  /// Reads the header and chooses the size.
  [[nodiscard]] bool start(const std::uint8_t* bytes, std::size_t count, std::int64_t shorter_side_min_px) {
    if (setjmp(reports_.out) != 0)
      return false;
    jpeg_create_decompress(&info_);
    watch_.progress_monitor = limit_scans;
    info_.progress = &watch_;
    jpeg_mem_src(&info_, bytes, count);
    jpeg_read_header(&info_, TRUE);
    if (printed())
      return true;
    info_.out_color_space = JCS_RGB;
    info_.dct_method = JDCT_ISLOW; // the same pixels on every machine
    for (info_.scale_num = 1, info_.scale_denom = 8; info_.scale_num < 8; ++info_.scale_num) {
      jpeg_calc_output_dimensions(&info_);
      if (shorter_side_min_px > 0 && std::min(width(), height()) >= shorter_side_min_px)
        break;
    }
    jpeg_calc_output_dimensions(&info_);
    return true;
  }

  /// @param line [W * 3], to work in @param planes [3, H, W]
  [[nodiscard]] bool decode(std::uint8_t* line, std::uint8_t* planes) {
    if (setjmp(reports_.out) != 0)
      return false;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      std::uint8_t* const place = planes + static_cast<std::int64_t>(info_.output_scanline) * width();
      jpeg_read_scanlines(&info_, &line, 1);
      for (std::int64_t x = 0; x < width(); ++x)
        for (std::int64_t channel = 0; channel < 3; ++channel)
          place[channel * width() * height() + x] = line[3 * x + channel];
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  [[nodiscard]] std::int64_t width() const { return info_.output_width; }
  [[nodiscard]] std::int64_t height() const { return info_.output_height; }
  [[nodiscard]] std::int64_t file_pixels() const {
    return static_cast<std::int64_t>(info_.image_width) * info_.image_height;
  }
  /// True if the image is in the four colours of printers.
  [[nodiscard]] bool printed() const {
    return info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
  }
  [[nodiscard]] std::string why() const { return reports_.text.data(); }

private:
  reporter reports_{};
  jpeg_progress_mgr watch_{};
  jpeg_decompress_struct info_{};
};

} // namespace

expected<at::Tensor> read_jpeg(const std::filesystem::path& file, std::int64_t shorter_side_min_px,
                               std::int64_t pixels_max) {
  const auto bytes = picture_bytes(file);
  if (!bytes)
    return tl::unexpected(bytes.error());
  const auto damaged = [&](const std::string& why) {
    return failed(file.string(),
                  fmt::format("is no whole JPEG file ({}): is it damaged? Write or fetch it again", why));
  };
  decoder image;
  if (!image.start(bytes->data(), bytes->size(), shorter_side_min_px))
    return damaged(image.why());
  if (image.printed())
    return failed(file.string(), "the picture is in the four colours of printers (CMYK): convert it to RGB");
  if (image.file_pixels() > pixels_max)
    return failed(file.string(),
                  fmt::format("the header states {} pixels, but pictures of this data set have at most {}",
                              image.file_pixels(), pixels_max));
  auto planes = new_tensor({3, image.height(), image.width()}, at::kByte);
  std::vector<std::uint8_t> line(static_cast<std::size_t>(3 * image.width()));
  if (!image.decode(line.data(), planes.mutable_data_ptr<std::uint8_t>()))
    return damaged(image.why());
  return planes;
}

} // namespace mneme
