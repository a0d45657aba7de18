#include "runtime/data/image_entries.hpp"
#include "runtime/data/image_file.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data_files.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/jpeg_files.hpp"
#include "tests/support/png_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fmt/format.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

using std::filesystem::path;

std::string content_of_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < digits.size(); at += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
  return bytes;
}

/// One file resized to data.side, [3, side, side].
at::Tensor square_of(const path& file, std::int64_t side) {
  const std::vector<image_entry> files{{file, 0, 0}};
  const auto rows = read_images(files, {}, 1, find_image_size(files, side).value(), false);
  REQUIRE(error_text(rows) == "");
  return rows->images[0];
}

std::string png_of_planes(const at::Tensor& planes) {
  const auto pixels = planes.permute({1, 2, 0}).contiguous();
  const auto* const first = pixels.const_data_ptr<std::uint8_t>();
  return png_of(static_cast<unsigned>(planes.size(2)), static_cast<unsigned>(planes.size(1)), PNG_FORMAT_RGB,
                {first, first + pixels.numel()});
}

/// Gray image with a checkerboard of one-pixel squares.
std::string chessboard(unsigned side) {
  std::vector<std::uint8_t> samples;
  for (unsigned at = 0; at < side * side; ++at)
    samples.push_back((at % side + at / side) % 2 == 0 ? 255 : 0);
  return png_of(side, side, PNG_FORMAT_GRAY, samples);
}

} // namespace

TEST_CASE("data.side gives the square of torchvision's CenterCrop and Resize", "[data]") {
  const scratch_folder folder;
  const auto record = golden_record("images");
  REQUIRE(record["squares"].size() == 5);
  for (const auto& entry : record["squares"]) {
    const auto side = entry["side"].get<std::int64_t>();
    write_file(folder.path() / "x.png", content_of_hex(entry["file"].get<std::string>()));
    const auto square = square_of(folder.path() / "x.png", side).permute({1, 2, 0}).contiguous(); // [side, side, 3]
    const auto* const first = square.const_data_ptr<std::uint8_t>();
    CHECK(std::string(first, first + square.numel()) == content_of_hex(entry["rgb"].get<std::string>()));
  }
}

TEST_CASE("data.side leaves a square image of that size unchanged", "[data]") {
  const scratch_folder folder;
  write_file(folder.path() / "x.png", chessboard(16));
  CHECK(at::equal(square_of(folder.path() / "x.png", 16), read_image(folder.path() / "x.png").value()));
}

TEST_CASE("data.side averages pixels when it reduces an image", "[data]") {
  const scratch_folder folder;
  write_file(folder.path() / "x.png", chessboard(64));
  const auto square = square_of(folder.path() / "x.png", 8);
  CHECK(square.min().item<int>() >= 127);
  CHECK(square.max().item<int>() <= 128);
}

TEST_CASE("a JPEG and a PNG file of the same pixels give the same row, for any reduction", "[data]") {
  const scratch_folder folder;
  const auto jpeg = folder.path() / "x.jpg", png = folder.path() / "x.png";
  write_file(jpeg, jpeg_of({.width = 160, .height = 96, .left = {250, 120, 10}, .right = {10, 10, 250}}));
  const auto planes = read_image(jpeg);
  REQUIRE(planes);
  write_file(png, png_of_planes(*planes));
  for (const std::int64_t side : {8, 12, 48, 96, 130})
    CHECK(at::equal(square_of(jpeg, side), square_of(png, side)));
  for (const auto fit : {image_fit::center, image_fit::center_bicubic, image_fit::whole})
    CHECK(at::equal(read_fitted_images({{jpeg, 0, 0}}, {}, 1, 10, fit)->images,
                    read_fitted_images({{png, 0, 0}}, {}, 1, 10, fit)->images));
}

TEST_CASE("the size of images is that of the first readable one", "[data]") {
  const scratch_folder folder;
  const auto broken = folder.path() / "a.png", whole = folder.path() / "b.png";
  write_file(broken, "broken");
  write_file(whole, gray_png(7, 5, 4));
  const auto size = find_image_size({{broken, 0, 0}, {whole, 0, 0}}, 0);
  REQUIRE(size);
  CHECK((size->height == 4 && size->width == 5 && size->like == whole));
  const auto none = error_text(find_image_size({{broken, 0, 0}, {broken, 1, 0}}, 0));
  CHECK(std::count(none.begin(), none.end(), '\n') == 2);
}

TEST_CASE("the first 20 broken images are named, with the number of all others", "[data]") {
  const scratch_folder folder;
  std::vector<image_entry> files;
  for (int i = 0; i < 25; ++i) {
    files.push_back({folder.path() / fmt::format("{:02}.png", i), 0, 0});
    write_file(files.back().file, "broken");
  }
  const auto findings = error_text(read_images(files, {}, 1, {.height = 8, .width = 8}, false));
  CHECK_THAT(findings, ContainsSubstring("19.png: error: is text;") &&
                           ContainsSubstring("5 more images of the data set cannot be used"));
  CHECK_THAT(findings, !ContainsSubstring("20.png"));
}
