#include "runtime/training/gather.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/base/tuning.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/training/image_resizer.hpp"
#include <algorithm>
namespace mneme {
namespace {

// D = C * H * W pixels of a row, as floats from 0 to 255 before normalization.

/// Writes the row's pixels, transformed by `map`, to pixels[D].
void transform(const pixel_map& map, const std::uint8_t* image, std::array<std::int64_t, 3> shape, float* pixels) {
  const auto total = shape[0] * shape[1] * shape[2], plane = shape[1] * shape[2];
  if (map.pixels.empty()) {
    kernels::convert_to_float(pixels, image, total);
  } else {
    const auto targets = std::ssize(map.pixels);
    MNEME_CHECK(targets == (map.across_channels ? total : plane), targets, total, plane);
    for (std::int64_t base = 0; base < total; base += targets)
      for (std::int64_t i = 0; i < targets; ++i) {
        const auto& taps = map.pixels[static_cast<std::size_t>(i)];
        float value = 0.0F;
        for (std::size_t t = 0; t < taps.from.size(); ++t)
          if (taps.from[t] >= 0)
            value += taps.weight[t] * static_cast<float>(image[base + taps.from[t]]);
        pixels[base + i] = value;
      }
  }
  if (map.invert)
    std::transform(pixels, pixels + total, pixels, [](float value) { return 255.0F - value; });
}

/// Writes the crop of `pixels`, padded with zeros and flipped if how.flip, to out[D].
void crop(const augmentation& how, const float* pixels, std::array<std::int64_t, 3> shape, float* out) {
  const auto [channels, height, width] = shape;
  const std::int64_t first = std::max<std::int64_t>(0, -how.right),
                     last = std::min<std::int64_t>(width, width - how.right);
  for (std::int64_t channel = 0; channel < channels; ++channel)
    for (std::int64_t y = 0; y < height; ++y, out += width) {
      const auto from = y + how.down;
      std::fill_n(out, width, 0.0F);
      if (from >= 0 && from < height && first < last)
        std::copy(pixels + (channel * height + from) * width + first + how.right,
                  pixels + (channel * height + from) * width + last + how.right, out + first);
      if (how.flip)
        std::reverse(out, out + width);
    }
}

/// Adjacent pixels of a row with equal normalization: the pixels of one channel, or all pixels.
struct pixel_runs {
  std::size_t count = 0;
  std::int64_t pixels = 0;
};
pixel_runs runs_of(const dataset& source, std::int64_t plane, std::int64_t total) {
  const auto alike = [](const std::vector<float>& values) {
    return std::all_of(values.begin(), values.end(), [&](float value) { return value == values[0]; });
  };
  return alike(source.scale) && alike(source.shift) ? pixel_runs{1, total} : pixel_runs{source.scale.size(), plane};
}

/// Prefetches a cache line. g++ treats a prefetch as a call without effect, so it removes functions that only prefetch.
/// The empty assembly statement prevents this.
void fetch_line(const void* address) {
  __builtin_prefetch(address);
  asm volatile("" : : "r"(address));
}

/// Prefetches a row. Returns the number of prefetched bytes.
std::int64_t fetch_lines(const std::uint8_t* row, std::int64_t bytes) {
  const auto asked = std::min(bytes, tuning::prefetched_of_row);
  for (std::int64_t line = 0; line < asked; line += 64)
    fetch_line(row + line);
  return asked;
}

template <class Pixel>
void normalize_row(const dataset& source, const Pixel* pixels, const pixel_runs& runs, float brightness, float* out) {
  for (std::size_t run = 0; run < runs.count; ++run, pixels += runs.pixels, out += runs.pixels)
    kernels::normalize(out, pixels, runs.pixels,
                       {.brightness = brightness, .scale = source.scale[run], .shift = source.shift[run]});
}

/// Counts rows that are about to be read, once per block of rows, because the data set may be mapped from a file. Linux
/// maps the whole block of its page cache around an address, of up to 2 MiB.
/// @param i index of the next row @param rows number of all rows
void note_reads(std::size_t i, std::size_t rows, std::int64_t row_bytes) {
  constexpr std::uint64_t around = std::uint64_t{2} << 20U;
  constexpr std::size_t block = 32;
  if (i % block == 0)
    note_mapped_reads(std::min(block, rows - i) * (static_cast<std::uint64_t>(row_bytes) + around));
}

bool is_identity(const pixel_map& map) { return map.pixels.empty() && !map.invert; }

} // namespace

augmentation draw_augmentation(augmentation_kind kind, const rng_key& stream, std::int64_t epoch,
                               std::int64_t position) {
  if (kind == augmentation_kind::none)
    return {};
  auto key = key_for(stream, purpose::augmentation);
  key.index = static_cast<std::uint64_t>(epoch) << 32U | static_cast<std::uint64_t>(position);
  rng_stream draw(key);
  augmentation how;
  if (kind == augmentation_kind::resized_crop_flip) {
    how.part = draw.bits64();
    how.flip = draw.below(2) == 1;
    return how;
  }
  how.down = static_cast<std::int32_t>(draw.below(2 * crop_padding_px + 1)) - crop_padding_px;
  how.right = static_cast<std::int32_t>(draw.below(2 * crop_padding_px + 1)) - crop_padding_px;
  how.flip = draw.below(2) == 1;
  if (kind == augmentation_kind::crop_flip_jitter)
    how.brightness = static_cast<float>(draw.uniform(1.0 - 63.0 / 255.0, 1.0 + 63.0 / 255.0));
  return how;
}

rng_key noise_key(const rng_key& stream, std::int64_t epoch, std::int64_t position) {
  auto key = key_for(stream, purpose::vector_noise);
  key.index = static_cast<std::uint64_t>(epoch) << 32U | static_cast<std::uint64_t>(position);
  return key;
}

row_prefetcher::row_prefetcher(const dataset& source) : source_(source) {
  if (source.vectors.defined())
    return;
  images_ = source.images.const_data_ptr<std::uint8_t>();
  image_bytes_ = source.images.stride(0);
}

std::int64_t row_prefetcher::fetch(std::int64_t row) const {
  const auto at = source_.in_file(row);
  fetch_line(source_.labels.data() + at);
  return images_ ? fetch_lines(images_ + at * image_bytes_, image_bytes_) : 0;
}

void gather_vectors(const dataset& source, std::span<const std::int64_t> rows, std::span<const rng_key> noise,
                    float* out) {
  MNEME_CHECK(noise.empty() || (noise.size() == rows.size() && source.deviations.defined()), noise.size());
  const auto width = source.vectors.size(1);
  const auto* const values = source.vectors.const_data_ptr<float>();
  const auto* const deviations = noise.empty() ? nullptr : source.deviations.const_data_ptr<float>();
  for (std::size_t i = 0; i < rows.size(); ++i, out += width) {
    note_reads(i, rows.size(), width * static_cast<std::int64_t>(sizeof(float)));
    if (rows[i] == padding_row) {
      std::fill_n(out, width, 0.0F);
      continue;
    }
    MNEME_CHECK(0 <= rows[i] && rows[i] < source.files_rows(), rows[i], source.files_rows());
    std::copy_n(values + rows[i] * width, width, out);
    if (!deviations)
      continue;
    rng_stream draw(noise[i]);
    for (std::int64_t d = 0; d < width; ++d)
      out[d] += deviations[rows[i] * width + d] * static_cast<float>(draw.normal());
  }
}

void gather(const dataset& source, std::span<const std::int64_t> rows, std::span<const augmentation> augment,
            float* out) {
  MNEME_CHECK(augment.empty() || augment.size() == rows.size(), augment.size(), rows.size());
  const auto shape = source.shape();
  const auto plane = shape[1] * shape[2], total = shape[0] * plane, files = source.files_rows();
  MNEME_CHECK(std::ssize(source.scale) == shape[0] && source.images.is_contiguous(), source.scale.size(), shape[0]);
  const auto* const images = source.images.const_data_ptr<std::uint8_t>();
  const auto stored = source.images.stride(0); // size of an image in bytes
  const auto runs = runs_of(source, plane, total);
  const auto prefetch = [&](std::size_t i) { // the cache lines of a row may be anywhere in memory
    if (i >= rows.size() || rows[i] == padding_row)
      return;
    fetch_lines(images + source.in_file(rows[i]) * stored, stored);
  };
  const auto ahead = static_cast<std::size_t>(std::clamp<std::int64_t>(tuning::prefetched_rows_bytes / stored, 1, 12));
  for (std::size_t i = 0; i < ahead; ++i)
    prefetch(i);
  image_resizer viewer(source);
  // Most rows are neither resized nor transformed nor augmented, and are normalized directly.
  const auto plain_rows = augment.empty() && !source.shown.changes() && is_identity(source.transforms[0]) ? files : 0;
  std::vector<float> moved, cropped; // allocated only for transformed rows
  for (std::size_t i = 0; i < rows.size(); ++i, out += total) {
    prefetch(i + ahead);
    note_reads(i, rows.size(), stored);
    const auto row = rows[i];
    if (row == padding_row) {
      std::fill_n(out, total, 0.0F);
      continue;
    }
    if (0 <= row && row < plain_rows) {
      normalize_row(source, images + row * stored, runs, augmentation{}.brightness, out);
      continue;
    }
    MNEME_CHECK(0 <= row && row < files * std::ssize(source.transforms), row, files, source.transforms.size());
    const auto how = augment.empty() ? augmentation{} : augment[i];
    const auto& map = source.transforms[row < files ? 0 : static_cast<std::size_t>(row / files)];
    MNEME_CHECK(is_identity(map) || !(source.shown.changes() || how.part), row); // the checks of the scenario reject
                                                                                 // this
    const auto* const image = viewer.resize(images + source.in_file(row) * stored, how.part);
    const bool crops = how.down != 0 || how.right != 0 || how.flip;
    if (is_identity(map) && !crops) {
      normalize_row(source, image, runs, how.brightness, out);
      continue;
    }
    moved.resize(static_cast<std::size_t>(total));
    transform(map, image, shape, moved.data());
    if (crops) {
      cropped.resize(static_cast<std::size_t>(total));
      crop(how, moved.data(), shape, cropped.data());
    }
    normalize_row(source, crops ? cropped.data() : moved.data(), runs, how.brightness, out);
  }
}

} // namespace mneme
