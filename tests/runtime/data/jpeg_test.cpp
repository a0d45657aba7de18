#include "runtime/data/jpeg.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data_files.hpp"
#include "tests/support/jpeg_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const made_jpeg red_and_blue{.width = 40, .height = 24, .left = {250, 10, 10}, .right = {10, 10, 250}};

expected<at::Tensor> decoded(const std::string& content) {
  return decode_jpeg({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()}, "one.jpg", 1 << 24);
}

/// Error of decode_jpeg() for this content.
std::string refusal(const std::string& content) {
  const auto image = decoded(content);
  REQUIRE_FALSE(image);
  REQUIRE(image.error().size() == 1);
  CHECK(image.error()[0].where == "one.jpg");
  return image.error()[0].text;
}

bool near(const at::Tensor& pixel, std::array<int, 3> color) {
  for (std::int64_t channel = 0; channel < 3; ++channel)
    if (std::abs(pixel[channel].item<int>() - color[static_cast<std::size_t>(channel)]) > 4)
      return false;
  return true;
}

} // namespace

TEST_CASE("decode_jpeg() returns three planes of a color image", "[data]") {
  const auto read = decoded(jpeg_of(red_and_blue));
  REQUIRE(read);
  REQUIRE(read->sizes() == at::IntArrayRef{3, 24, 40});
  CHECK(near(read->select(2, 3).select(1, 5), {250, 10, 10}));
  CHECK(near(read->select(2, 36).select(1, 20), {10, 10, 250}));
}

TEST_CASE("decode_jpeg() returns three equal planes of a gray image", "[data]") {
  const auto read = decoded(jpeg_of({.width = 9, .height = 5, .left = {77}, .right = {77}, .colors = JCS_GRAYSCALE}));
  REQUIRE(read);
  CHECK(read->sizes() == at::IntArrayRef{3, 5, 9});
  CHECK((*read == 77).all().item<bool>());
}

TEST_CASE("decode_jpeg() refuses damaged and truncated images", "[data]") {
  const auto whole = jpeg_of(red_and_blue);
  CHECK_THAT(refusal(whole.substr(0, whole.size() - 60)), ContainsSubstring("is a damaged or truncated JPEG image"));
  CHECK_THAT(refusal(whole.substr(0, 100)), ContainsSubstring("is a damaged or truncated JPEG image"));
  auto precise = whole;
  precise[whole.find("\xFF\xC0") + 4] = 12; // bits per sample
  CHECK_THAT(refusal(precise),
             ContainsSubstring("is a JPEG image of a kind that is not supported (Unsupported JPEG data "
                               "precision 12): convert it"));
}

TEST_CASE("a header with excessive sizes is refused before memory is allocated", "[data]") {
  auto lying = jpeg_of(red_and_blue);
  const auto frame = lying.find("\xFF\xC0");
  REQUIRE(frame != std::string::npos);
  lying.replace(frame + 5, 4, "\xFD\xE8\xFD\xE8"); // height and width of 65,000
  CHECK_THAT(refusal(lying), ContainsSubstring("the header states 4225000000 pixels"));
}

TEST_CASE("decode_jpeg() accepts the scans of a usual progressive file and refuses thousands of scans", "[data]") {
  made_jpeg gray{.width = 40, .height = 24, .left = {77}, .right = {99}, .colors = JCS_GRAYSCALE};
  gray.scans = {
      {1, {0}, 0, 0, 0, 0}, {1, {0}, 1, 5, 0, 2}, {1, {0}, 6, 63, 0, 2}, {1, {0}, 1, 63, 2, 1}, {1, {0}, 1, 63, 1, 0}};
  CHECK(decoded(jpeg_of(gray)));
  gray.scans.resize(1);
  for (int k = 1; k < 64; ++k) // each coefficient separately, twice
    for (const int low : {1, 0})
      gray.scans.push_back({1, {0}, k, k, low == 0 ? 1 : 0, low});
  CHECK_THAT(refusal(jpeg_of(gray)), ContainsSubstring("more scans than an image needs"));
}
