#include "runtime/data/transforms.hpp"
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numeric>
using namespace mneme;

namespace {

/// Applies `map` to the image `from` [H * W].
std::vector<float> shown(const pixel_map& map, const std::vector<float>& from) {
  std::vector<float> to;
  for (const auto& taps : map.pixels) {
    float sum = 0.0F;
    for (std::size_t i = 0; i < 4; ++i)
      sum += taps.from[i] < 0 ? 0.0F : taps.weight[i] * from[static_cast<std::size_t>(taps.from[i])];
    to.push_back(sum);
  }
  return to;
}

const std::vector<float> nine{1, 2, 3, 4, 5, 6, 7, 8, 9}; // 3 x 3

} // namespace

TEST_CASE("an identity affine transform leaves the image unchanged", "[transforms]") {
  CHECK(shown(affine_pixels(3, 3, {}), nine) == nine);
}

TEST_CASE("a rotation by 90 degrees moves the left column to the top row", "[transforms]") {
  CHECK(shown(affine_pixels(3, 3, {.rotation_degrees = 90}), nine) == std::vector<float>{7, 4, 1, 8, 5, 2, 9, 6, 3});
  // Rotates around the center, which is between pixels if sides are even.
  CHECK(shown(affine_pixels(2, 2, {.rotation_degrees = 90}), {1, 2, 3, 4}) == std::vector<float>{3, 1, 4, 2});
}

TEST_CASE("a shear of 1 moves the row below the center right by one pixel and fills with black", "[transforms]") {
  CHECK(shown(affine_pixels(3, 3, {.shear = 1}), nine) == std::vector<float>{2, 3, 0, 4, 5, 6, 0, 7, 8});
}

TEST_CASE("an image is sheared before it is rotated", "[transforms]") {
  CHECK(shown(affine_pixels(3, 3, {.rotation_degrees = 90, .shear = 1}), nine) ==
        std::vector<float>{0, 4, 2, 7, 5, 3, 8, 6, 0});
}

TEST_CASE("a shear of 1/2 averages neighboring pixels", "[transforms]") {
  CHECK(shown(affine_pixels(3, 3, {.shear = 0.5}), nine) ==
        std::vector<float>{1.5F, 2.5F, 1.5F, 4, 5, 6, 3.5F, 7.5F, 8.5F});
}

TEST_CASE("a rotation by 45 degrees interpolates an edge center from the diagonal", "[transforms]") {
  // The pixel above the center comes from (-sqrt(1/2), -sqrt(1/2)): bilinear in 1, 2, 4, 5.
  const double s = std::sqrt(0.5);
  const double above = s * s * 1 + (1 - s) * s * 2 + s * (1 - s) * 4 + (1 - s) * (1 - s) * 5;
  CHECK(shown(affine_pixels(3, 3, {.rotation_degrees = 45}), nine)[1] == Catch::Approx(above));
}

TEST_CASE("interpolation weights sum to 1, and indices lie within the image", "[transforms]") {
  rng_stream stream({.seed = 3});
  for (int i = 0; i < 20; ++i) {
    const auto map = affine_pixels(28, 20, draw_affine(stream));
    REQUIRE(map.pixels.size() == 28 * 20);
    CHECK_FALSE(map.across_channels);
    for (const auto& taps : map.pixels) {
      REQUIRE(std::accumulate(taps.weight.begin(), taps.weight.end(), 0.0) == Catch::Approx(1.0));
      REQUIRE(std::all_of(taps.weight.begin(), taps.weight.end(), [](float w) { return w >= 0.0F; }));
      REQUIRE(std::all_of(taps.from.begin(), taps.from.end(), [](int from) { return from >= -1 && from < 28 * 20; }));
    }
  }
}

TEST_CASE("drawn transforms stay in their ranges, and half of them invert", "[transforms]") {
  rng_stream stream({.seed = 4});
  int inverted = 0;
  double largest_turn = 0.0, largest_shear = 0.0;
  for (int i = 0; i < 1000; ++i) {
    const auto change = draw_affine(stream);
    inverted += change.invert;
    largest_turn = std::max(largest_turn, std::abs(change.rotation_degrees));
    largest_shear = std::max(largest_shear, std::abs(change.shear));
  }
  CHECK((largest_turn <= 45.0 && largest_turn > 44.0));
  CHECK((largest_shear <= 0.3 && largest_shear > 0.29));
  CHECK(inverted == Catch::Approx(500).margin(4 * std::sqrt(250.0)));
}

TEST_CASE("the first task shows images unchanged, and each later task has its own permutation", "[transforms]") {
  const auto maps = task_transforms(task_transform::permute, 4, {3, 4, 4}, 1);
  REQUIRE(maps.size() == 4);
  CHECK(maps[0].pixels.empty());
  std::vector<std::vector<std::int32_t>> orders;
  for (std::size_t t = 1; t < 4; ++t) {
    CHECK(maps[t].across_channels);
    CHECK_FALSE(maps[t].invert);
    std::vector<std::int32_t> order;
    for (const auto& taps : maps[t].pixels) {
      CHECK(taps.weight == std::array<float, 4>{1, 0, 0, 0});
      order.push_back(taps.from[0]);
    }
    orders.push_back(order);
    std::sort(order.begin(), order.end());
    std::vector<std::int32_t> labels(48);
    std::iota(labels.begin(), labels.end(), 0);
    CHECK(order == labels);
  }
  CHECK(orders[0] != orders[1]);
  CHECK(orders[1] != orders[2]);
}

TEST_CASE("transforms depend on the seed and the task, not on the number of tasks", "[transforms]") {
  const auto order = [](const pixel_map& map) {
    std::vector<std::int32_t> labels;
    for (const auto& taps : map.pixels)
      labels.push_back(taps.from[0]);
    return labels;
  };
  const auto few = task_transforms(task_transform::permute, 3, {1, 5, 5}, 1);
  const auto many = task_transforms(task_transform::permute, 9, {1, 5, 5}, 1);
  CHECK(order(few[2]) == order(many[2]));
  CHECK(order(few[2]) != order(task_transforms(task_transform::permute, 3, {1, 5, 5}, 2)[2]));
}
