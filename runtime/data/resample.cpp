#include "runtime/data/resample.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <cmath>
namespace mneme {
namespace {

constexpr int fraction_bits = 32 - 8 - 2; // leaves room, because a cubic filter can overshoot

/// Radius of the filter, in input pixels, when an image is not reduced.
double reach_of(resampling how) { return how == resampling::bilinear ? 1.0 : 2.0; }

/// Filter weight at a distance: triangle filter, or Keys' cubic (1981) with a = -1/2.
double weight_at(resampling how, double away) {
  const double x = std::abs(away);
  if (how == resampling::bilinear)
    return x < 1.0 ? 1.0 - x : 0.0;
  constexpr double a = -0.5;
  if (x < 1.0)
    return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
}

std::int32_t fixed_point(double weight) {
  return static_cast<std::int32_t>(weight * (1 << fraction_bits) + (weight < 0.0 ? -0.5 : 0.5));
}

std::uint8_t byte_of(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp((sum + (1 << (fraction_bits - 1))) >> fraction_bits, 0, 255));
}

/// Weighted sum of `count` bytes with stride `step`.
std::int32_t weighted(const std::uint8_t* bytes, std::int64_t step, const std::int32_t* weights, std::int64_t count) {
  std::int32_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i)
    sum += weights[i] * bytes[i * step];
  return sum;
}

/// Returns the integer next to `x`; halves are rounded up.
std::int64_t round_half_up(double x) { return static_cast<std::int64_t>(std::floor(x + 0.5)); }

/// Returns half / 2, rounded half to even.
std::int64_t half_to_even(std::int64_t half) {
  const auto below = half / 2;
  return half % 2 != 0 && below % 2 != 0 ? below + 1 : below;
}

} // namespace

resampler::axis::axis(resampling how, std::int64_t from, std::int64_t to, std::int64_t part_first, std::int64_t part) {
  MNEME_CHECK(from > 0 && 0 <= part_first && part_first + part <= to, from, to, part_first, part);
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double blur = std::max(scale, 1.0), reach = reach_of(how) * blur;
  std::vector<double> exact;
  for (auto i = part_first; i < part_first + part; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(round_half_up(center - reach), 0);
    const auto last = std::min(round_half_up(center + reach), from);
    exact.clear();
    double sum = 0.0;
    for (auto x = first; x < last; ++x) {
      exact.push_back(weight_at(how, (static_cast<double>(x) - center + 0.5) / blur));
      sum += exact.back();
    }
    pixels.push_back({.first = first, .count = last - first, .weight = std::ssize(weights)});
    for (const double weight : exact)
      weights.push_back(fixed_point(weight / sum));
  }
}

resampler::resampler(resampling how, const pixel_box& box, std::int64_t height, std::int64_t width,
                     const pixel_box& part)
    : box_(box), lines_(how, box.height, height, part.top, part.height),
      columns_(how, box.width, width, part.left, part.width) {}

void resampler::apply(const std::uint8_t* image, const std::array<std::int64_t, 3>& shape, std::uint8_t* out) {
  const auto [channels, height, width] = shape;
  MNEME_CHECK(box_.top >= 0 && box_.left >= 0 && box_.top + box_.height <= height && box_.left + box_.width <= width,
              box_.top, box_.left, box_.height, box_.width);
  const auto columns = std::ssize(columns_.pixels);
  wide_.resize(static_cast<std::size_t>(box_.height * columns));
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    const auto* const corner = image + (channel * height + box_.top) * width + box_.left;
    for (std::int64_t y = 0; y < box_.height; ++y)
      for (std::int64_t x = 0; x < columns; ++x) {
        const auto& mixed = columns_.pixels[static_cast<std::size_t>(x)];
        wide_[static_cast<std::size_t>(y * columns + x)] =
            byte_of(weighted(corner + y * width + mixed.first, 1, columns_.weights.data() + mixed.weight, mixed.count));
      }
    for (const auto& mixed : lines_.pixels)
      for (std::int64_t x = 0; x < columns; ++x)
        *out++ = byte_of(weighted(wide_.data() + mixed.first * columns + x, columns,
                                  lines_.weights.data() + mixed.weight, mixed.count));
  }
}

pixel_box middle_of(std::int64_t image_height, std::int64_t image_width, std::int64_t height, std::int64_t width) {
  return {.top = half_to_even(image_height - height),
          .left = half_to_even(image_width - width),
          .height = height,
          .width = width};
}

} // namespace mneme
