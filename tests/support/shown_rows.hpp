/// shown_rows: a data set with transforms, and batches with all of them, for tests of gather functions.
#pragma once
#include "runtime/training/gather.hpp"
#include "tests/support/learning.hpp"
namespace mneme::test {

/// Twenty images under five transforms: identity, inversion, interpolation within a channel, reversed pixels, and the
/// last two inverted.
inline dataset shown_data(shape3 shape) {
  auto source = *drawn_data(20, shape, 5);
  const auto plane = static_cast<std::int32_t>(shape[1] * shape[2]),
             total = static_cast<std::int32_t>(shape[0]) * plane;
  pixel_map blurred, turned{.across_channels = true};
  for (std::int32_t i = 0; i < plane; ++i)
    blurred.pixels.push_back({.from = {i, i - 1, i + 7 < plane ? i + 7 : -1, -1}, .weight = {0.5F, 0.3F, 0.2F, 0}});
  for (std::int32_t i = 0; i < total; ++i)
    turned.pixels.push_back({.from = {total - 1 - i, -1, -1, -1}, .weight = {1, 0, 0, 0}});
  auto blurred_inverse = blurred;
  blurred_inverse.invert = true;
  source.transforms = {{}, {.invert = true}, blurred, turned, blurred_inverse};
  return source;
}

struct shown_batch {
  std::vector<std::int64_t> rows{};
  std::vector<augmentation> augment{};
};
/// Fifty rows with all transforms, including padding.
inline shown_batch shown_rows(const dataset& source, bool augmented) {
  shown_batch made;
  const auto total = source.files_rows() * std::ssize(source.transforms);
  for (std::int64_t i = 0; i < 50; ++i) {
    made.rows.push_back(i % 9 == 8 ? padding_row : i * 7 % total);
    if (augmented)
      made.augment.push_back(draw_augmentation(augmentation_kind::crop_flip_jitter, {.seed = 5}, 2, i));
  }
  return made;
}

} // namespace mneme::test
