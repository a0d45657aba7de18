#include "runtime/data/image_format.hpp"
#include "runtime/base/lower_case.hpp"
#include <algorithm>
#include <array>
#include <string_view>
namespace mneme {
namespace {

using namespace std::string_view_literals;

/// A format with files that begin with fixed bytes.
struct signature {
  std::string_view bytes{};
  const char* name = nullptr;
  std::size_t offset = 0;
};

constexpr std::string_view png_signature = "\x89PNG\r\n\x1a\n"sv;
constexpr std::string_view jpeg_signature = "\xFF\xD8\xFF"sv;

constexpr std::array signatures{
    signature{png_signature, "a PNG image"},
    signature{"\x89PNG", "a PNG image with a damaged signature, as a transfer in text mode leaves it"},
    signature{jpeg_signature, "a JPEG image"},
    signature{"GIF87a", "a GIF image"},
    signature{"GIF89a", "a GIF image"},
    signature{"II*\0"sv, "a TIFF image"},
    signature{"MM\0*"sv, "a TIFF image"},
    signature{"II+\0"sv, "a TIFF image"},
    signature{"MM\0+"sv, "a TIFF image"},
    signature{"WEBP", "a WebP image", 8},
    signature{"ftypavif", "an AVIF image", 4},
    signature{"ftypavis", "an AVIF image", 4},
    signature{"ftyphei", "a HEIC image", 4},
    signature{"ftyphev", "a HEIC image", 4},
    signature{"ftypmif1", "a HEIF image", 4},
    signature{"ftypmsf1", "a HEIF image", 4},
    signature{"ftyp", "a video or another MP4 container", 4},
    signature{"\0\0\0\x0CjP  "sv, "a JPEG 2000 image"},
    signature{"\xFF\x4F\xFF\x51"sv, "a JPEG 2000 image"},
    signature{"\0\0\0\x0CJXL "sv, "a JPEG XL image"},
    signature{"\xFF\x0A"sv, "a JPEG XL image"},
    signature{"\0\0\1\0"sv, "an icon (ICO)"},
    signature{"8BPS", "a Photoshop image"},
    signature{"\x8AMNG", "an MNG animation"},
    signature{"\x8BJNG", "a JNG image"},
    signature{"qoif", "a QOI image"},
    signature{"\x76\x2F\x31\x01"sv, "an OpenEXR image"},
    signature{"#?RADIANCE", "a Radiance HDR image"},
    signature{"DICM", "a DICOM image", 128},
    signature{"SIMPLE  =", "a FITS image"},
    signature{"\x93NUMPY", "a NumPy array"},
    signature{"\x89HDF", "an HDF5 file"},
    signature{"%PDF", "a PDF document"},
    signature{"PK\3\4"sv, "a ZIP archive"},
    signature{"\x1F\x8B"sv, "a gzip file"},
    signature{"\xFD\x37zXZ"sv, "an xz file"},
    signature{"Rar!", "a RAR archive"},
    signature{"7z\xBC\xAF"sv, "a 7-Zip archive"},
    signature{"\0\5\x16\7"sv, "metadata of macOS, not the image itself"},
    signature{"version https://git-lfs", "a pointer of Git LFS, not the image itself: run `git lfs pull`"},
};

bool starts_with(std::string_view text, const signature& format) {
  return text.size() >= format.offset && text.substr(format.offset).starts_with(format.bytes);
}

/// Detects Netpbm and BMP. Their signatures have only two letters, so more of the header is checked.
const char* describe_short_signature(std::string_view text) {
  if (text.size() > 2 && text[0] == 'P' && '1' <= text[1] && text[1] <= '7' && (text[2] == '\n' || text[2] == ' '))
    return "a PPM, PGM or PBM image";
  constexpr std::size_t reserved_offset = 6;
  if (text.starts_with("BM") && text.size() > reserved_offset && text.substr(reserved_offset, 4) == "\0\0\0\0"sv)
    return "a BMP image";
  return nullptr;
}

/// Detects markup languages by their first tag, ignoring case.
const char* describe_markup(std::string_view text) {
  const auto lower = lower_case(text);
  if (lower.find("<svg") != std::string::npos)
    return "an SVG image";
  for (const auto* const tag : {"<!doctype html", "<html", "<head", "<body"})
    if (lower.find(tag) != std::string::npos)
      return "an HTML page, not the image itself";
  const auto first = lower.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string::npos)
    return nullptr;
  if (lower.compare(first, 5, "<?xml") == 0)
    return "an XML document";
  return lower[first] == '{' || lower[first] == '[' ? "JSON text" : nullptr;
}

bool is_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 || c == '\n' || c == '\r' || c == '\t';
  });
}

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), format_bytes)};
}

} // namespace

image_format detect_image_format(std::span<const std::uint8_t> bytes) {
  const auto text = text_of(bytes);
  if (text.starts_with(png_signature))
    return image_format::png;
  return text.starts_with(jpeg_signature) ? image_format::jpeg : image_format::unsupported;
}

std::string describe_content(std::span<const std::uint8_t> bytes) {
  const auto text = text_of(bytes);
  for (const auto& format : signatures)
    if (starts_with(text, format))
      return format.name;
  if (const auto* const name = describe_short_signature(text))
    return name;
  if (std::all_of(text.begin(), text.end(), [](char c) { return c == '\0'; }))
    return "zeros only";
  if (!is_text(text))
    return "no known image format";
  const auto* const markup = describe_markup(text);
  return markup ? markup : "text";
}

} // namespace mneme
