#include "runtime/data/png_picture.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/png_files.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// What reading a file of these bytes says.
expected<at::Tensor> picture(const std::string& bytes, std::int64_t pixels_max = 1'000) {
  const scratch_folder folder;
  write_file(folder.path() / "x.png", bytes);
  return read_png(folder.path() / "x.png", pixels_max);
}

std::string refusal(const std::string& bytes, std::int64_t pixels_max = 1'000) {
  const auto found = picture(bytes, pixels_max);
  return found ? "" : diagnostic_text(found.error().front());
}

} // namespace

TEST_CASE("PNG pictures of every kind become three planes", "[data]") {
  const auto colours = picture(png_of(2, 1, PNG_FORMAT_RGB, {10, 20, 30, 40, 50, 60}));
  REQUIRE(colours);
  CHECK(at::equal(*colours, at::tensor({10, 40, 20, 50, 30, 60}, at::kByte).view({3, 1, 2})));
  const auto grey = picture(png_of(1, 2, PNG_FORMAT_GRAY, {7, 9}));
  REQUIRE(grey);
  CHECK(at::equal(*grey, at::tensor({7, 9, 7, 9, 7, 9}, at::kByte).view({3, 2, 1})));
  const auto clear = picture(png_of(1, 1, PNG_FORMAT_RGBA, {0, 0, 0, 0}));
  REQUIRE(clear);
  CHECK(at::equal(*clear, at::full({3, 1, 1}, 255, at::kByte)));
}

TEST_CASE("what is no whole PNG file is refused, and a large one before memory is taken", "[data]") {
  const auto whole = grey_png(3, 20, 20);
  CHECK_THAT(refusal("no picture"), ContainsSubstring("x.png: error: is no whole PNG file"));
  CHECK_THAT(refusal(whole.substr(0, whole.size() - 20)), ContainsSubstring("is no whole PNG file"));
  CHECK_THAT(refusal(whole.substr(0, 30)), ContainsSubstring("is no whole PNG file"));
  auto damaged = whole;
  damaged[damaged.size() - 25] = static_cast<char>(damaged[damaged.size() - 25] ^ 0x55);
  CHECK_THAT(refusal(damaged), ContainsSubstring("is no whole PNG file"));
  CHECK_THAT(refusal(whole, 399), ContainsSubstring("the header states 400 pixels, but pictures of this data set have "
                                                    "at most 399"));
}
