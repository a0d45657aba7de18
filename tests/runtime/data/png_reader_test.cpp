#include "runtime/data/png_reader.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/png_files.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

expected<at::Tensor> picture(const std::string& bytes, std::int64_t pixels_max = 1'000) {
  return decode_png({bytes.begin(), bytes.end()}, "x.png", pixels_max);
}

std::string refusal(const std::string& bytes, std::int64_t pixels_max = 1'000) {
  const auto found = picture(bytes, pixels_max);
  return found ? "" : diagnostic_text(found.error().front());
}

} // namespace

TEST_CASE("PNG images of every kind become three planes", "[data]") {
  const auto colors = picture(png_of(2, 1, PNG_FORMAT_RGB, {10, 20, 30, 40, 50, 60}));
  REQUIRE(colors);
  CHECK(at::equal(*colors, at::tensor({10, 40, 20, 50, 30, 60}, at::kByte).view({3, 1, 2})));
  const auto gray = picture(png_of(1, 2, PNG_FORMAT_GRAY, {7, 9}));
  REQUIRE(gray);
  CHECK(at::equal(*gray, at::tensor({7, 9, 7, 9, 7, 9}, at::kByte).view({3, 2, 1})));
  const auto clear = picture(png_of(1, 1, PNG_FORMAT_RGBA, {10, 20, 30, 0}));
  REQUIRE(clear);
  CHECK(at::equal(clear->flatten(), at::tensor({10, 20, 30}, at::kByte))); // alpha is dropped
}

TEST_CASE("decode_png() refuses damaged images, and oversized ones before memory is allocated", "[data]") {
  const auto whole = gray_png(3, 20, 20);
  CHECK_THAT(refusal(whole.substr(0, whole.size() - 20)),
             ContainsSubstring("x.png: error: is a damaged or truncated PNG image"));
  CHECK_THAT(refusal(whole.substr(0, 30)), ContainsSubstring("x.png: error: is a damaged or truncated PNG image"));
  auto damaged = whole;
  damaged[damaged.size() - 25] = static_cast<char>(damaged[damaged.size() - 25] ^ 0x55);
  CHECK_THAT(refusal(damaged), ContainsSubstring("x.png: error: is a damaged or truncated PNG image"));
  CHECK_THAT(refusal(whole.substr(0, whole.size() - 4)), ContainsSubstring("before the chunk IEND is complete"));
  CHECK_THAT(refusal(whole, 399), ContainsSubstring("the header states 400 pixels, but images of this data set have "
                                                    "at most 399"));
  auto lying = whole.substr(0, 16) + big_endian(30'000) + big_endian(30'000) + whole.substr(24, 5);
  lying += big_endian(static_cast<std::uint32_t>(
               crc32(0, reinterpret_cast<const Bytef*>(lying.data()) + 12, static_cast<uInt>(lying.size() - 12)))) +
           whole.substr(33);
  CHECK_THAT(refusal(lying, 1 << 30), ContainsSubstring("bytes do not hold 900000000 pixels"));
}
