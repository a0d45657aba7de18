#include "runtime/training/image_resizer.hpp"
#include "runtime/base/rng.hpp"
#include <cmath>
namespace mneme {
namespace {

constexpr double area_min = 0.05, narrow = 3.0 / 4.0, wide = 4.0 / 3.0;

/// Rounds to the nearest integer, ties to even, like Python's round().
std::int64_t rounded(double value) { return static_cast<std::int64_t>(std::nearbyint(value)); }

pixel_box largest_middle(std::int64_t height, std::int64_t width) {
  const double shape = static_cast<double>(width) / static_cast<double>(height);
  pixel_box box{.height = height, .width = width};
  if (shape < narrow)
    box.height = rounded(static_cast<double>(width) / narrow);
  else if (shape > wide)
    box.width = rounded(static_cast<double>(height) * wide);
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

} // namespace

pixel_box random_crop_box(std::uint64_t draw, std::int64_t height, std::int64_t width) {
  constexpr int draws = 10;
  rng_stream stream({.seed = draw});
  const auto area = static_cast<double>(height * width);
  for (int i = 0; i < draws; ++i) {
    const double pixels = area * stream.uniform(area_min, 1.0);
    const double shape = std::exp(stream.uniform(std::log(narrow), std::log(wide)));
    pixel_box box{.height = rounded(std::sqrt(pixels / shape)), .width = rounded(std::sqrt(pixels * shape))};
    if (box.height < 1 || box.height > height || box.width < 1 || box.width > width)
      continue;
    box.top = static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(height - box.height + 1)));
    box.left = static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(width - box.width + 1)));
    return box;
  }
  return largest_middle(height, width);
}

image_resizer::image_resizer(const dataset& source) : stored_(source.stored_shape()), shape_(source.shape()) {
  if (!source.shown.changes())
    return;
  const auto [height, width] = source.shown.resized(stored_[1], stored_[2]);
  whole_.emplace(resampling::bicubic, pixel_box{.height = stored_[1], .width = stored_[2]}, height, width,
                 middle_of(height, width, shape_[1], shape_[2]));
}

const std::uint8_t* image_resizer::resize(const std::uint8_t* image, const std::optional<std::uint64_t>& part) {
  if (!part && !whole_)
    return image;
  const auto [channels, height, width] = shape_;
  bytes_.resize(static_cast<std::size_t>(channels * height * width));
  if (part)
    resampler(resampling::bilinear, random_crop_box(*part, stored_[1], stored_[2]), height, width,
              {.height = height, .width = width})
        .apply(image, stored_, bytes_.data());
  else
    whole_->apply(image, stored_, bytes_.data());
  return bytes_.data();
}

} // namespace mneme
