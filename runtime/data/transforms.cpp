#include "runtime/data/transforms.hpp"
#include "runtime/base/check.hpp"
#include <cmath>
#include <numbers>
#include <numeric>
namespace mneme {
namespace {

/// The four pixels around the point (x, y) with their bilinear weights.
pixel_map::taps bilinear(double x, double y, std::int64_t height, std::int64_t width) {
  const double left = std::floor(x), top = std::floor(y);
  const double right_share = x - left, lower_share = y - top;
  pixel_map::taps taps;
  for (std::size_t i = 0; i < 4; ++i) {
    const bool is_right = i % 2 != 0, is_lower = i >= 2;
    const double column = left + (is_right ? 1.0 : 0.0), row = top + (is_lower ? 1.0 : 0.0);
    const double weight = (is_right ? right_share : 1 - right_share) * (is_lower ? lower_share : 1 - lower_share);
    const bool inside =
        column >= 0 && column < static_cast<double>(width) && row >= 0 && row < static_cast<double>(height);
    taps.from[i] = inside && weight > 0 ? static_cast<std::int32_t>(row) * static_cast<std::int32_t>(width) +
                                              static_cast<std::int32_t>(column)
                                        : -1;
    taps.weight[i] = static_cast<float>(weight);
  }
  return taps;
}

/// Rounds coordinates within 1e-9 of a pixel center to that center, because the computed cos(90 degrees) is not exactly
/// 0.
double snapped(double coordinate) {
  const double nearest = std::round(coordinate);
  return std::abs(coordinate - nearest) < 1e-9 ? nearest : coordinate;
}

} // namespace

affine_change draw_affine(rng_stream& stream) {
  affine_change change;
  change.rotation_degrees = stream.uniform(-45.0, 45.0);
  change.shear = stream.uniform(-0.3, 0.3);
  change.invert = stream.below(2) == 1;
  return change;
}

// Maps each result pixel to its source position: inverse rotation, then inverse shear.
pixel_map affine_pixels(std::int64_t height, std::int64_t width, const affine_change& change) {
  const double angle = change.rotation_degrees * std::numbers::pi / 180.0;
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const double middle_x = static_cast<double>(width - 1) / 2, middle_y = static_cast<double>(height - 1) / 2;
  pixel_map map;
  map.invert = change.invert;
  map.pixels.reserve(static_cast<std::size_t>(height * width));
  for (std::int64_t row = 0; row < height; ++row)
    for (std::int64_t column = 0; column < width; ++column) {
      const double right = static_cast<double>(column) - middle_x, down = static_cast<double>(row) - middle_y;
      const double y = cosine * down - sine * right;
      const double x = cosine * right + sine * down - change.shear * y;
      map.pixels.push_back(bilinear(snapped(x + middle_x), snapped(y + middle_y), height, width));
    }
  return map;
}

pixel_map permute_pixels(std::int64_t pixels, rng_stream& stream) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(pixels));
  std::iota(order.begin(), order.end(), 0);
  stream.shuffle(std::span(order));
  pixel_map map;
  map.across_channels = true;
  map.pixels.reserve(order.size());
  for (const std::int32_t from : order)
    map.pixels.push_back({.from = {from, -1, -1, -1}, .weight = {1.0F, 0.0F, 0.0F, 0.0F}});
  return map;
}

std::vector<pixel_map> task_transforms(task_transform kind, std::int64_t tasks, std::array<std::int64_t, 3> shape,
                                       std::uint64_t seed) {
  MNEME_CHECK(kind == task_transform::permute || kind == task_transform::affine, static_cast<int>(kind));
  const auto [channels, height, width] = shape;
  std::vector<pixel_map> maps(1); // the first task does not change the images
  for (std::int64_t task = 1; task < tasks; ++task) {
    rng_stream stream(key_for({.seed = seed, .task = {static_cast<std::uint32_t>(task)}}, purpose::pixel_transform));
    if (kind == task_transform::permute)
      maps.push_back(permute_pixels(channels * height * width, stream));
    else
      maps.push_back(affine_pixels(height, width, draw_affine(stream)));
  }
  return maps;
}

} // namespace mneme
