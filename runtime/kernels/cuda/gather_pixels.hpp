/// gather_pixels: builds a batch from rows of a data set on a device. Each thread writes four pixels.
#pragma once
#include "runtime/kernels/cuda/thread_index.hpp"
namespace mneme::kernels::cuda {

// Shapes: N rows of a file, C channels, H height, W width, D = C * H * W pixels, T transforms.

/// One row of the batch: sixteen bytes, read by all threads that write its pixels.
struct alignas(16) gather_row {
  std::int32_t file_row = 0;  ///< Row of the file; -1: a row of zeros
  std::int32_t transform = 0; ///< below T
  float brightness = 1.0F;
  std::int8_t down = 0, right = 0; ///< Offsets as in mneme::augmentation, in pixels.
  std::uint8_t flip = 0;
};

/// Sources of one pixel and their weights; a negative index is unused.
struct alignas(16) pixel_taps {
  std::int32_t from[4];
  float weight[4];
};
/// One transform. Pixel i of each run of `targets` output pixels is the sum of taps[first + i]. Indices in taps are
/// relative to the start of the run.
struct tap_table {
  std::int64_t first = 0;
  std::int32_t targets = 0; ///< H * W, or D if pixels change channels; 0: pixels do not move.
  std::int32_t invert = 0;
};

/// Arguments of the kernel.
struct gathered_rows {
  const std::uint8_t* images = nullptr;  ///< [N, D]
  const gather_row* rows = nullptr;      ///< [count]
  const tap_table* transforms = nullptr; ///< [T]
  const pixel_taps* taps = nullptr;
  const float *scale = nullptr, *shift = nullptr; ///< [C]
  float* out = nullptr;                           ///< [count, D]
  std::int32_t channels = 0, height = 0, width = 0;
  std::int64_t count = 0;
  bool quads = false; ///< true: D is a multiple of four, and `images` and `out` are aligned to quads.
};

// -- One pixel --------------------------------------------------------------------------------------------------------

/// Value of pixel i of the file row `image` under transform `map`, from 0 to 255.
MNEME_HOST_DEVICE inline float shown_pixel(const std::uint8_t* image, const tap_table& map, const pixel_taps* taps,
                                           std::int32_t i) {
  float value = 0.0F;
  if (map.targets == 0) {
    value = static_cast<float>(image[i]);
  } else {
    const std::int32_t at = i % map.targets;
    const pixel_taps from = taps[map.first + at];
    for (int t = 0; t < 4; ++t)
      if (from.from[t] >= 0)
        value += from.weight[t] * static_cast<float>(image[i - at + from.from[t]]);
  }
  return map.invert ? 255.0F - value : value;
}

/// Index in the transformed image of pixel i of the batch's row; -1 for a black pixel outside the image.
MNEME_HOST_DEVICE inline std::int32_t source_of_pixel(const gathered_rows& on, const gather_row& row, std::int32_t i) {
  const std::int32_t line = i / on.width, x = i - line * on.width, y = line % on.height;
  const std::int32_t from_x = (row.flip ? on.width - 1 - x : x) + row.right, from_y = y + row.down;
  const bool inside = 0 <= from_x && from_x < on.width && 0 <= from_y && from_y < on.height;
  return inside ? (line + row.down) * on.width + from_x : -1;
}

MNEME_HOST_DEVICE inline float normalized_pixel(float value, float brightness, float scale, float shift) {
  const float bright = value * brightness;
  return (bright > 255.0F ? 255.0F : bright) * scale + shift;
}

// -- One thread -------------------------------------------------------------------------------------------------------

/// out[0 .. n) = pixels i .. i + n - 1 of a row of the batch.
MNEME_HOST_DEVICE inline void make_pixels(const gathered_rows& on, const gather_row& row, std::int32_t i, int n,
                                          float* out) {
  const std::int32_t plane = on.height * on.width;
  const std::uint8_t* const image = on.images + static_cast<std::int64_t>(row.file_row) * on.channels * plane;
  const tap_table map = on.transforms[row.transform];
  const bool moves = row.down != 0 || row.right != 0 || row.flip != 0;
  if (!moves && map.targets == 0 && on.quads) { // the usual case, in which one load reads four pixels
    const four_bytes bytes = *reinterpret_cast<const four_bytes*>(image + i);
    for (int j = 0; j < n; ++j)
      out[j] = map.invert ? 255.0F - static_cast<float>(bytes.at[j]) : static_cast<float>(bytes.at[j]);
  } else {
    for (int j = 0; j < n; ++j) {
      const std::int32_t from = moves ? source_of_pixel(on, row, i + j) : i + j;
      out[j] = from < 0 ? 0.0F : shown_pixel(image, map, on.taps, from);
    }
  }
  for (int j = 0; j < n; ++j) {
    const std::int32_t channel = (i + j) / plane;
    out[j] = normalized_pixel(out[j], row.brightness, on.scale[channel], on.shift[channel]);
  }
}

MNEME_HOST_DEVICE inline void run_thread(const gathered_rows& on, thread_index at) {
  const std::int32_t pixels = on.channels * on.height * on.width; // D
  const std::int32_t quads = (pixels + 3) / 4;
  for (std::int64_t item = at.x.first; item < on.count * quads; item += at.x.step) {
    const std::int64_t k = item / quads;
    const auto i = static_cast<std::int32_t>(item - k * quads) * 4;
    const gather_row row = on.rows[k];
    const int n = pixels - i < 4 ? pixels - i : 4;
    four_floats four{};
    if (row.file_row >= 0)
      make_pixels(on, row, i, n, four.at);
    float* const out = on.out + k * pixels + i;
    if (on.quads)
      *reinterpret_cast<four_floats*>(out) = four;
    else
      for (int j = 0; j < n; ++j)
        out[j] = four.at[j];
  }
}

inline grid_shape grid_of(const gathered_rows& on) {
  const std::int64_t pixels = static_cast<std::int64_t>(on.channels) * on.height * on.width;
  return grid_for(on.count * ((pixels + 3) / 4));
}

} // namespace mneme::kernels::cuda
