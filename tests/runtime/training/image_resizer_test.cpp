#include "runtime/training/gather.hpp"
#include "runtime/training/image_resizer.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/learning.hpp"
#include <set>
using namespace mneme;
using namespace mneme::test;

namespace {

dataset shown_as(shape3 stored, resize_spec shown) {
  auto source = *drawn_data(4, stored, 2);
  source.shown = shown;
  return source;
}

at::Tensor gathered(const dataset& source, const std::vector<std::int64_t>& rows,
                    const std::vector<augmentation>& augment = {}) {
  const auto [channels, height, width] = source.shape();
  auto out = at::full({std::ssize(rows), channels, height, width}, 7.0F);
  gather(source, rows, augment, out.mutable_data_ptr<float>());
  return out;
}

/// Bytes of a row resampled by the test and normalized.
at::Tensor expected_of(const dataset& source, std::int64_t row, resampler how) {
  const auto shape = source.shape();
  auto bytes = at::empty({shape[0], shape[1], shape[2]}, at::kByte);
  how.apply(source.images[row].const_data_ptr<std::uint8_t>(), source.stored_shape(),
            bytes.mutable_data_ptr<std::uint8_t>());
  return bytes.to(at::kFloat) * at::tensor(source.scale).view({-1, 1, 1}) + at::tensor(source.shift).view({-1, 1, 1});
}

} // namespace

TEST_CASE("a data set reports the size of its resized images", "[gather]") {
  using sizes = std::array<std::int64_t, 3>;
  CHECK(shown_as({3, 6, 9}, {}).shape() == sizes{3, 6, 9});
  CHECK(shown_as({3, 6, 9}, {.resize = 16}).shape() == sizes{3, 16, 24});
  CHECK(shown_as({3, 9, 6}, {.resize = 16}).shape() == sizes{3, 24, 16});
  CHECK(shown_as({3, 7, 10}, {.resize = 16}).shape() == sizes{3, 16, 22}); // 22.86, truncated
  CHECK(shown_as({1, 6, 9}, {.resize = 16, .crop = 14}).shape() == sizes{1, 14, 14});
  CHECK(shown_as({1, 6, 9}, {.crop = 5}).shape() == sizes{1, 5, 5});
  CHECK(shown_as({1, 6, 9}, {.crop = 5}).stored_shape() == sizes{1, 6, 9});
}

TEST_CASE("rows are resized by bicubic interpolation and center-cropped", "[gather]") {
  const auto source = shown_as({3, 6, 9}, {.resize = 16, .crop = 14});
  const auto out = gathered(source, {2, padding_row, 0});
  const resampler how(resampling::bicubic, {.height = 6, .width = 9}, 16, 24,
                      {.top = 1, .left = 5, .height = 14, .width = 14});
  CHECK(largest_difference(out[0], expected_of(source, 2, how)) < 1e-5);
  CHECK(same_bits(out[1], at::zeros({3, 14, 14})));
  CHECK(largest_difference(out[2], expected_of(source, 0, how)) < 1e-5);
  // Padded crops and flips apply to the resized image.
  const auto moved = gathered(source, {0}, {{.down = 1, .right = -2, .flip = true}})[0];
  CHECK(same_bits(moved.flip(2).narrow(1, 0, 13).narrow(2, 2, 12).contiguous(),
                  out[2].narrow(1, 1, 13).narrow(2, 0, 12).contiguous()));
}

TEST_CASE("a random crop is resized to the whole size and may be flipped", "[gather]") {
  for (const auto& shown : {resize_spec{}, resize_spec{.resize = 12, .crop = 10}}) {
    const auto source = shown_as({3, 8, 8}, shown);
    const auto side = source.shape()[1];
    for (const std::uint64_t draw : {1U, 2U, 77U}) {
      const auto expected = expected_of(
          source, 1,
          resampler(resampling::bilinear, random_crop_box(draw, 8, 8), side, side, {.height = side, .width = side}));
      CHECK(largest_difference(gathered(source, {1}, {{.part = draw}})[0], expected) < 1e-5);
      CHECK(largest_difference(gathered(source, {1}, {{.flip = true, .part = draw}})[0], expected.flip(2)) < 1e-5);
    }
  }
}

TEST_CASE("random crops have 5 % to 100 % of an image and aspect ratios between 3/4 and 4/3", "[gather]") {
  double smallest = 1.0, sum = 0.0;
  std::set<std::int64_t> tops;
  constexpr int draws = 4000;
  for (std::uint64_t draw = 0; draw < draws; ++draw) {
    const auto part = random_crop_box(draw, 100, 100);
    CHECK((part.top >= 0 && part.left >= 0 && part.top + part.height <= 100 && part.left + part.width <= 100));
    const auto height = static_cast<double>(part.height), width = static_cast<double>(part.width);
    CHECK((width + 0.5) / (height - 0.5) >= 0.75);
    CHECK((width - 0.5) / (height + 0.5) <= 4.0 / 3.0);
    const double share = height * width / 1e4;
    smallest = std::min(smallest, share);
    sum += share;
    tops.insert(part.top);
  }
  CHECK((0.045 <= smallest && smallest < 0.055));
  CHECK((0.45 < sum / draws && sum / draws < 0.525)); // uniform, except crops that do not fit non-square images
  CHECK(*tops.begin() == 0);
  CHECK(*tops.rbegin() > 70);
}

TEST_CASE("if ten draws do not fit, the largest central crop is used", "[gather]") {
  // A crop has 50 to 1000 pixels and a height of at most 10 (rounded): 6.5 of 100 draws fit, and none of ten with
  // probability 0.51.
  int middles = 0;
  for (std::uint64_t draw = 0; draw < 1000; ++draw) {
    const auto part = random_crop_box(draw, 10, 100);
    middles += part.top == 0 && part.left == 43 && part.height == 10 && part.width == 13;
  }
  CHECK((450 < middles && middles < 570));
  const auto tall = random_crop_box(0, 1000, 1); // no crop of a line has an aspect ratio between 3/4 and 4/3
  CHECK((tall.height == 1 && tall.width == 1 && tall.top == 499));
}

TEST_CASE("random crops are drawn by stream, epoch and row", "[gather]") {
  const auto part_of = [](const rng_key& stream, std::int64_t epoch, std::int64_t row) {
    return draw_augmentation(augmentation_kind::resized_crop_flip, stream, epoch, row);
  };
  const rng_key stream{.seed = 3, .client = {4}};
  std::set<std::uint64_t> draws;
  int flips = 0;
  for (std::int64_t row = 0; row < 1000; ++row) {
    const auto how = part_of(stream, 0, row);
    CHECK((how.down == 0 && how.right == 0 && how.brightness == 1.0F));
    draws.insert(how.part.value());
    flips += how.flip;
  }
  CHECK(draws.size() == 1000);
  CHECK((420 < flips && flips < 580));
  CHECK(part_of(stream, 1, 7).part == part_of(stream, 1, 7).part);
  CHECK(part_of(stream, 1, 7).part != part_of(stream, 2, 7).part);
  CHECK(part_of(stream, 1, 7).part != part_of({.seed = 3, .client = {5}}, 1, 7).part);
}
