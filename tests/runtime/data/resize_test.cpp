#include "runtime/data/resize.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

TEST_CASE("two pixels resized to four equal values worked out by hand", "[data]") {
  // Centers at -1/4, 1/4, 3/4, 5/4 of the input: weights 0, 1/4, 3/4, and the edge.
  const auto image = at::tensor({0, 100}, at::kByte).reshape({1, 1, 1, 2});
  CHECK(resize_bilinear(image, 1, 4).flatten().equal(at::tensor({0, 25, 75, 100}, at::kByte)));
  const auto odd = at::tensor({0, 2}, at::kByte).reshape({1, 1, 1, 2});
  CHECK(resize_bilinear(odd, 1, 4).flatten().equal(at::tensor({0, 1, 2, 2}, at::kByte))); // halves round up
}

TEST_CASE("resizing to the same size changes nothing", "[data]") {
  const auto image = at::arange(2 * 3 * 5, at::kByte).reshape({2, 1, 3, 5});
  CHECK(resize_bilinear(image, 3, 5).equal(image));
}

TEST_CASE("resizing agrees with PyTorch's bilinear interpolation up to rounding for odd sizes", "[data]") {
  const auto image = (at::arange(2 * 3 * 16 * 13) * 37 % 256).to(at::kByte).reshape({2, 3, 16, 13});
  for (const auto& [height, width] : {std::pair{28, 28}, {7, 31}, {16, 13}, {1, 1}, {33, 5}}) {
    const auto ours = resize_bilinear(image, height, width).to(at::kFloat);
    const auto theirs = at::upsample_bilinear2d(image.to(at::kFloat), {height, width}, false);
    INFO(height << "x" << width);
    CHECK((ours - theirs).abs().max().item<float>() <= 0.5F + 1e-3F);
  }
}
