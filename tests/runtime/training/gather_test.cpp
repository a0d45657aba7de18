#include "runtime/training/gather.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/learning.hpp"
#include "tests/support/reference_gather.hpp"
#include <set>
using namespace mneme;
using namespace mneme::test;

namespace {

at::Tensor gathered(const dataset& source, const std::vector<std::int64_t>& rows,
                    const std::vector<augmentation>& augment = {}) {
  const auto shape = source.shape();
  auto out = at::empty({std::ssize(rows), shape[0], shape[1], shape[2]});
  gather(source, rows, augment, out.mutable_data_ptr<float>());
  return out;
}

/// One 2 x 3 image, 10 20 30
/// 40 50 60, without a transform.
dataset small_image() {
  dataset made;
  made.images = at::tensor(std::vector<int>{10, 20, 30, 40, 50, 60}).to(at::kByte).view({1, 1, 2, 3});
  made.labels = {0};
  made.transforms.resize(1);
  made.scale = {1.0F};
  made.shift = {0.0F};
  return made;
}

at::Tensor pixels(const std::vector<float>& values) { return at::tensor(values).view({1, 1, 2, 3}); }

} // namespace

TEST_CASE("pixels are scaled and shifted per channel", "[gather]") {
  dataset made;
  made.images = at::tensor(std::vector<int>{0, 255, 100, 50}).to(at::kByte).view({1, 2, 1, 2});
  made.labels = {0};
  made.transforms.resize(1);
  made.scale = {2.0F, 0.5F};
  made.shift = {-1.0F, 3.0F};
  CHECK(largest_difference(gathered(made, {0}), at::tensor({-1.0F, 509.0F, 53.0F, 28.0F})) == 0.0);
}

TEST_CASE("a crop shifts the image and fills with black, and a flip follows it", "[gather]") {
  const auto source = small_image();
  CHECK(same_bits(gathered(source, {0}, {{.down = 1}}), pixels({40, 50, 60, 0, 0, 0})));
  CHECK(same_bits(gathered(source, {0}, {{.right = -1}}), pixels({0, 10, 20, 0, 40, 50})));
  CHECK(same_bits(gathered(source, {0}, {{.flip = true}}), pixels({30, 20, 10, 60, 50, 40})));
  CHECK(same_bits(gathered(source, {0}, {{.down = -1, .right = 2, .flip = true}}), pixels({0, 0, 0, 0, 0, 30})));
  CHECK(same_bits(gathered(source, {0}, {{.right = 4}}), pixels({0, 0, 0, 0, 0, 0})));
}

TEST_CASE("brightness multiplies pixels and clamps them at white", "[gather]") {
  auto source = small_image();
  source.images.mutable_data_ptr<std::uint8_t>()[5] = 240;
  CHECK(same_bits(gathered(source, {0}, {{.brightness = 1.25F}}), pixels({12.5F, 25, 37.5F, 50, 62.5F, 255})));
}

TEST_CASE("a row's transform applies interpolation, then inversion", "[gather]") {
  auto source = small_image();
  pixel_map permuted{.across_channels = true};
  for (const std::int32_t from : {5, 4, 3, 2, 1, 0})
    permuted.pixels.push_back({.from = {from, -1, -1, -1}, .weight = {1, 0, 0, 0}});
  pixel_map blurred{.invert = true};
  for (std::int32_t i = 0; i < 6; ++i)
    blurred.pixels.push_back({.from = {i, (i + 1) % 6, -1, -1}, .weight = {0.5F, 0.25F, 0.25F, 0}});
  source.transforms = {{}, permuted, blurred};
  const auto out = gathered(source, {1, 2, 0});
  CHECK(same_bits(out[0].unsqueeze(0), pixels({60, 50, 40, 30, 20, 10})));
  CHECK(same_bits(out[1].unsqueeze(0), pixels({245, 237.5F, 230, 222.5F, 215, 222.5F})));
  CHECK(same_bits(out[2].unsqueeze(0), pixels({10, 20, 30, 40, 50, 60})));
}

TEST_CASE("gather() equals ATen's operations, with transforms and augmentation", "[gather]") {
  auto source = *drawn_data(20, {3, 9, 11}, 5);
  pixel_map shifted{.invert = true};
  for (std::int32_t i = 0; i < 99; ++i)
    shifted.pixels.push_back({.from = {i, i - 1, i + 7 < 99 ? i + 7 : -1, -1}, .weight = {0.5F, 0.3F, 0.2F, 0}});
  source.transforms.push_back(shifted);
  std::vector<std::int64_t> rows;
  std::vector<augmentation> augment;
  for (std::int64_t i = 0; i < 30; ++i) {
    rows.push_back(i * 7 % 40);
    augment.push_back(draw_augmentation(augmentation_kind::crop_flip_jitter, {.seed = 5}, 2, i));
  }
  CHECK(largest_difference(gathered(source, rows), reference_gather(source, rows, {})) < 1e-5);
  CHECK(largest_difference(gathered(source, rows, augment), reference_gather(source, rows, augment)) < 1e-5);
}

TEST_CASE("augmentation is drawn per stream, epoch and row, within its bounds", "[gather]") {
  const rng_key stream{.seed = 3, .client = {4}};
  std::set<std::pair<std::int32_t, std::int32_t>> places;
  int flips = 0;
  float darkest = 2, brightest = 0;
  for (std::int64_t row = 0; row < 2000; ++row) {
    const auto how = draw_augmentation(augmentation_kind::crop_flip_jitter, stream, 0, row);
    places.emplace(how.down, how.right);
    flips += how.flip;
    darkest = std::min(darkest, how.brightness);
    brightest = std::max(brightest, how.brightness);
  }
  CHECK(places.size() == 81); // 9 x 9, all of them
  CHECK(places.begin()->first == -4);
  CHECK(places.rbegin()->second == 4);
  CHECK((900 < flips && flips < 1100));
  CHECK((192.0F / 255.0F <= darkest && darkest < 0.76F));
  CHECK((1.24F < brightest && brightest <= 318.0F / 255.0F));
  const auto shown = [&](rng_key key, std::int64_t epoch) {
    std::string text;
    for (std::int64_t row = 0; row < 20; ++row) {
      const auto how = draw_augmentation(augmentation_kind::crop_flip, key, epoch, row);
      CHECK(how.brightness == 1.0F);
      text += std::to_string(how.down) + "," + std::to_string(how.right) + (how.flip ? "f " : " ");
    }
    return text;
  };
  CHECK(shown(stream, 1) == shown(stream, 1));
  CHECK(shown(stream, 1) != shown(stream, 2));
  CHECK(shown(stream, 1) != shown({.seed = 3, .client = {5}}, 1));
}
