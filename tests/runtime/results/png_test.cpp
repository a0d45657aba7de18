#include "runtime/data/png_reader.hpp"
#include "runtime/results/png.hpp"
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

/// [3, H, W]
at::Tensor decoded(const std::string& bytes) {
  const auto image = decode_png({bytes.begin(), bytes.end()}, "image.png", 1000);
  REQUIRE(image.has_value());
  return *image;
}

} // namespace

TEST_CASE("png_bytes() writes a gray image of 8 bits per sample") {
  const auto gray = at::arange(6, at::kByte).mul(40).view({1, 2, 3});
  const auto bytes = png_bytes(gray);
  CHECK(bytes.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  CHECK(bytes.substr(16, 10) == std::string{0, 0, 0, 3, 0, 0, 0, 2, 8, 0}); // width, height, bits, no color
  CHECK(at::equal(decoded(bytes), gray.expand({3, 2, 3})));
  CHECK(png_bytes(gray) == bytes);
}

TEST_CASE("png_bytes() writes color pixels for any strides of the tensor") {
  const auto color = at::tensor({1, 2, 3, 4, 5, 6}, at::kByte).view({2, 3}).t().view({3, 2, 1});
  CHECK_FALSE(color.is_contiguous());
  CHECK(at::equal(decoded(png_bytes(color)), color));
}
