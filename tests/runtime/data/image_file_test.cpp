#include "runtime/data/image_file.hpp"
#include "runtime/data/image_format.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data_files.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/jpeg_files.hpp"
#include "tests/support/png_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/stat.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string bytes_of_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < digits.size(); at += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
  return bytes;
}

/// [3, height, width] from "rgb" of a record, which stores [height, width, 3].
at::Tensor expected_planes(const nlohmann::json& entry) {
  const auto pixels = bytes_of_hex(entry["rgb"].get<std::string>());
  const auto height = entry["height"].get<std::int64_t>(), width = entry["width"].get<std::int64_t>();
  auto planes = at::empty({height, width, 3}, at::kByte);
  std::copy(pixels.begin(), pixels.end(), planes.mutable_data_ptr<std::uint8_t>());
  return planes.permute({2, 0, 1}).contiguous();
}

/// Reads a file with this content; its name does not determine the format.
expected<at::Tensor> read_content(const std::string& content, const char* name = "x.png") {
  const scratch_folder folder;
  write_file(folder.path() / name, content);
  return read_image(folder.path() / name);
}

std::string description(std::string_view content) {
  return describe_content({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()});
}

} // namespace

TEST_CASE("read_image() returns the samples of Pillow, OpenCV and torchvision", "[data]") {
  const auto record = golden_record("images");
  REQUIRE(record["images"].size() == 84);
  for (const auto& entry : record["images"]) {
    INFO(entry["name"].get<std::string>());
    const auto planes = read_content(bytes_of_hex(entry["file"].get<std::string>()));
    CHECK(error_text(planes) == "");
    if (planes)
      CHECK(at::equal(*planes, expected_planes(entry)));
  }
}

TEST_CASE("read_image() names damaged and truncated files in its error", "[data]") {
  const auto record = golden_record("images");
  REQUIRE(record["errors"].size() == 14);
  for (const auto& entry : record["errors"]) {
    INFO(entry["name"].get<std::string>());
    const auto planes = read_content(bytes_of_hex(entry["file"].get<std::string>()));
    CHECK_THAT(error_text(planes), ContainsSubstring("x.png: error: is a damaged or truncated "));
  }
}

TEST_CASE("read_image() decodes by content, whatever the extension is", "[data]") {
  const auto jpeg = jpeg_of({.width = 8, .height = 8, .left = {9, 9, 9}, .right = {9, 9, 9}});
  const auto of_jpeg = read_content(jpeg, "x.png"), of_png = read_content(gray_png(9, 8, 8), "x.jpg");
  REQUIRE(error_text(of_jpeg) + error_text(of_png) == "");
  CHECK(at::equal(*of_jpeg, *of_png));
}

TEST_CASE("read_image() names the format of a file that it cannot decode", "[data]") {
  using namespace std::string_literals;
  CHECK_THAT(error_text(read_content("RIFF\x24\0\0\0WEBPVP8 "s)),
             ContainsSubstring("x.png: error: is a WebP image; expected PNG or JPEG: convert the image"));
  CHECK_THAT(error_text(read_content("")), ContainsSubstring("the file is empty"));
  CHECK(description("GIF89a") == "a GIF image");
  CHECK(description("BM\x46\0\0\0\0\0\0\0\x36\0\0\0"s) == "a BMP image");
  CHECK(description("II*\0\x08\0\0\0"s) == "a TIFF image");
  CHECK(description("\0\0\0\x18"
                    "ftypheic"s) == "a HEIC image");
  CHECK(description("\0\0\0\x1C"
                    "ftypavif"s) == "an AVIF image");
  CHECK(description("P6\n3 2\n255\n") == "a PPM, PGM or PBM image");
  CHECK(description("\n<!DOCTYPE HTML><title>404</title>") == "an HTML page, not the image itself");
  CHECK(description("<?xml version=\"1.0\"?><svg>") == "an SVG image");
  CHECK(description("{\"error\": 404}") == "JSON text");
  CHECK(description("Not found") == "text");
  CHECK_THAT(description("version https://git-lfs.github.com/spec/v1\n"), ContainsSubstring("a pointer of Git LFS"));
  CHECK_THAT(description("\x89PNG\n\x1a\n"), ContainsSubstring("a PNG image with a damaged signature"));
  CHECK(description(std::string(20, '\0')) == "zeros only");
  CHECK(description("\1\2\3\4") == "no known image format");
}

TEST_CASE("read_image() reads only ordinary files", "[data]") {
  const scratch_folder folder;
  CHECK_THAT(error_text(read_image(folder.path())), ContainsSubstring("is a folder"));
  REQUIRE(::mkfifo((folder.path() / "x.png").c_str(), 0600) == 0);
  CHECK_THAT(error_text(read_image(folder.path() / "x.png")),
             ContainsSubstring("x.png: error: is a named pipe; expected an ordinary file"));
  CHECK(unsupported_format(folder.path() / "x.png").empty());
}
