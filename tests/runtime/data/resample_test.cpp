#include "runtime/data/resample.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

/// Resizes an image [C, H, W] to height x width, or computes a part of the result.
at::Tensor resampled(const at::Tensor& image, resampling how, std::int64_t height, std::int64_t width, pixel_box part) {
  auto out = at::full({image.size(0), part.height, part.width}, 7, at::kByte);
  resampler(how, {.height = image.size(1), .width = image.size(2)}, height, width, part)
      .apply(image.const_data_ptr<std::uint8_t>(), {image.size(0), image.size(1), image.size(2)},
             out.mutable_data_ptr<std::uint8_t>());
  return out;
}
at::Tensor resampled(const at::Tensor& image, resampling how, std::int64_t height, std::int64_t width) {
  return resampled(image, how, height, width, {.height = height, .width = width});
}

at::Tensor line(std::vector<int> values) { return at::tensor(values, at::kByte).reshape({1, 1, -1}); }

/// Bytes from 64 to 191, so that cubics do not overshoot 0 or 255.
at::Tensor drawn_image(std::int64_t height, std::int64_t width) {
  return (at::arange(3 * height * width) * 37 % 128 + 64).to(at::kByte).reshape({3, height, width});
}

} // namespace

TEST_CASE("resampled lines of pixels equal values worked out by hand", "[data]") {
  // Twice as wide: centers at 1/4, 3/4, 5/4, 7/4 of the input, with a radius of one pixel.
  CHECK(resampled(line({0, 100}), resampling::bilinear, 1, 4).equal(line({0, 25, 75, 100})));
  // Half as wide: the triangle is twice as wide, weights 3/7, 3/7, 1/7 and 1/7, 3/7, 3/7.
  CHECK(resampled(line({0, 70, 140, 210}), resampling::bilinear, 1, 2).equal(line({50, 160})));
  // Keys' cubic at 1/4, 3/4 and 5/4 is 0.8671875, 0.2265625 and -0.0703125; the weights sum to 1.
  CHECK(resampled(line({0, 100}), resampling::bicubic, 1, 4).equal(line({0, 21, 79, 109})));
  CHECK(resampled(line({155, 255}), resampling::bicubic, 1, 4).equal(line({146, 176, 234, 255})));
}

TEST_CASE("an image resampled to its own size stays unchanged", "[data]") {
  const auto image = drawn_image(5, 9);
  for (const auto how : {resampling::bilinear, resampling::bicubic})
    CHECK(resampled(image, how, 5, 9).equal(image));
}

TEST_CASE("resampling agrees with PyTorch's antialiased interpolation up to rounding", "[data]") {
  for (const auto& [height, width, to_height, to_width] :
       {std::array<std::int64_t, 4>{32, 32, 256, 256}, {16, 13, 7, 31}, {40, 21, 9, 9}, {5, 5, 5, 11}, {9, 7, 1, 1}}) {
    const auto image = drawn_image(height, width);
    const auto floats = image.to(at::kFloat).unsqueeze(0);
    const std::array<std::int64_t, 2> size{to_height, to_width};
    const auto differ = [&](const at::Tensor& ours, const at::Tensor& theirs) {
      return (ours.to(at::kFloat) - theirs[0]).abs().max().item<float>();
    };
    CAPTURE(height, width, to_height, to_width);
    // Each pass has a rounding error of at most 1/2; the absolute cubic weights sum to 1.3.
    CHECK(differ(resampled(image, resampling::bilinear, to_height, to_width),
                 at::_upsample_bilinear2d_aa(floats, size, false)) <= 1.01F);
    CHECK(differ(resampled(image, resampling::bicubic, to_height, to_width),
                 at::_upsample_bicubic2d_aa(floats, size, false)) <= 1.2F);
  }
}

TEST_CASE("a part of a resampled image has the bytes of the whole", "[data]") {
  const auto image = drawn_image(32, 20);
  const auto whole = resampled(image, resampling::bicubic, 51, 32);
  const pixel_box part{.top = 11, .left = 4, .height = 28, .width = 24};
  CHECK(resampled(image, resampling::bicubic, 51, 32, part)
            .equal(whole.narrow(1, part.top, part.height).narrow(2, part.left, part.width)));
}

TEST_CASE("a box of an image is resampled like an image of its own", "[data]") {
  const auto image = drawn_image(12, 15);
  const pixel_box box{.top = 3, .left = 7, .height = 6, .width = 5};
  auto out = at::empty({3, 8, 9}, at::kByte);
  resampler(resampling::bilinear, box, 8, 9, {.height = 8, .width = 9})
      .apply(image.const_data_ptr<std::uint8_t>(), {3, 12, 15}, out.mutable_data_ptr<std::uint8_t>());
  const auto alone = image.narrow(1, box.top, box.height).narrow(2, box.left, box.width).contiguous();
  CHECK(out.equal(resampled(alone, resampling::bilinear, 8, 9)));
}

TEST_CASE("the center crop of an image has torchvision's position", "[data]") {
  const auto even = middle_of(256, 256, 224, 224), odd = middle_of(341, 343, 224, 224);
  CHECK((even.top == 16 && even.left == 16 && even.height == 224 && even.width == 224));
  CHECK((odd.top == 58 && odd.left == 60)); // 58.5 and 59.5: half to even
}
