#include "runtime/kernels/pooling.hpp"
#include "runtime/kernels/simd.hpp"
#include <algorithm>
#include <limits>
namespace mneme::kernels {
namespace {

constexpr std::int64_t lanes = 16; // channels at a time, their maxima in registers

/// Taps low .. high - 1 of a window that begins at pixel `from` lie within an axis of `pixels`.
struct tap_range {
  std::int64_t low = 0, high = 0;
};
MNEME_INLINE tap_range taps_within(std::int64_t from, std::int64_t window, std::int64_t pixels) {
  return {from < 0 ? -from : 0, from + window > pixels ? pixels - from : window};
}

/// One window of up to `lanes` channels. `corner` is where its first tap would lie.
MNEME_INLINE void largest(const pool_shape& shape, const float* corner, const tap_range& down, const tap_range& along,
                          std::int64_t channels, float* y, std::uint8_t* places) {
  float best[lanes];
  std::int32_t place[lanes] = {};
  for (std::int64_t c = 0; c < channels; ++c)
    best[c] = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < channels; ++i) // all pixels may be -infinity
    place[i] = static_cast<std::int32_t>(down.low * shape.window + along.low);
  for (std::int64_t ty = down.low; ty < down.high; ++ty)
    for (std::int64_t tx = along.low; tx < along.high; ++tx) {
      const float* const x = corner + (ty * shape.width + tx) * shape.channels;
      const auto tap = static_cast<std::int32_t>(ty * shape.window + tx);
      for (std::int64_t c = 0; c < channels; ++c) {
        const bool wins = !(x[c] <= best[c]); // larger, or NaN, or after a NaN
        const bool beaten = best[c] != best[c] && x[c] == x[c];
        place[c] = wins && !beaten ? tap : place[c];
        best[c] = wins && !beaten ? x[c] : best[c];
      }
    }
  for (std::int64_t c = 0; c < channels; ++c)
    y[c] = best[c], places[c] = static_cast<std::uint8_t>(place[c]);
}

template <class Set>
MNEME_INLINE void max_pool_body(const pool_shape& shape, const float* x, float* y, std::uint8_t* places) {
  for (std::int64_t image = 0; image < shape.rows; ++image, x += shape.height * shape.width * shape.channels)
    for (std::int64_t oy = 0; oy < shape.out_height(); ++oy)
      for (std::int64_t ox = 0; ox < shape.out_width(); ++ox) {
        const std::int64_t from_y = oy * shape.stride - shape.padding, from_x = ox * shape.stride - shape.padding;
        const auto down = taps_within(from_y, shape.window, shape.height);
        const auto along = taps_within(from_x, shape.window, shape.width);
        const float* const corner = x + (from_y * shape.width + from_x) * shape.channels;
        std::int64_t c = 0;
        for (; c + lanes <= shape.channels; c += lanes)
          largest(shape, corner + c, down, along, lanes, y + c, places + c);
        if (c < shape.channels)
          largest(shape, corner + c, down, along, shape.channels - c, y + c, places + c);
        y += shape.channels, places += shape.channels;
      }
}

/// Sends a window's gradient to the pixel that won; `Add`: windows overlap.
template <bool Add>
MNEME_INLINE void send_back(const pool_shape& shape, const float* __restrict dy, const std::uint8_t* __restrict places,
                            float* corner, const tap_range& down, const tap_range& along) {
  for (std::int64_t ty = down.low; ty < down.high; ++ty)
    for (std::int64_t tx = along.low; tx < along.high; ++tx) {
      float* const __restrict d = corner + (ty * shape.width + tx) * shape.channels;
      const auto tap = static_cast<std::uint8_t>(ty * shape.window + tx);
      for (std::int64_t c = 0; c < shape.channels; ++c) {
        const float sent = places[c] == tap ? dy[c] : 0.0F;
        d[c] = Add ? d[c] + sent : sent;
      }
    }
}

template <class Set>
MNEME_INLINE void max_pool_back_body(const pool_shape& shape, const float* dy, const std::uint8_t* places, float* dx) {
  const std::int64_t image_floats = shape.height * shape.width * shape.channels;
  const auto tiles = [&](std::int64_t pixels, std::int64_t windows) { return windows * shape.window == pixels; };
  const bool once = shape.stride == shape.window && shape.padding == 0; // each pixel is in one window at most
  const bool all = once && tiles(shape.height, shape.out_height()) && tiles(shape.width, shape.out_width());
  for (std::int64_t image = 0; image < shape.rows; ++image, dx += image_floats) {
    if (!all)
      std::fill_n(dx, image_floats, 0.0F);
    for (std::int64_t oy = 0; oy < shape.out_height(); ++oy)
      for (std::int64_t ox = 0; ox < shape.out_width(); ++ox) {
        const std::int64_t from_y = oy * shape.stride - shape.padding, from_x = ox * shape.stride - shape.padding;
        const auto down = taps_within(from_y, shape.window, shape.height);
        const auto along = taps_within(from_x, shape.window, shape.width);
        float* const corner = dx + (from_y * shape.width + from_x) * shape.channels;
        if (once)
          send_back<false>(shape, dy, places, corner, down, along);
        else
          send_back<true>(shape, dy, places, corner, down, along);
        dy += shape.channels, places += shape.channels;
      }
  }
}

template <class Set>
MNEME_INLINE void mean_pool_body(std::int64_t rows, std::int64_t pixels, std::int64_t channels, const float* x,
                                 float* y) {
  for (std::int64_t row = 0; row < rows; ++row, y += channels) {
    std::fill_n(y, channels, 0.0F);
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel, x += channels)
      for (std::int64_t c = 0; c < channels; ++c)
        y[c] += x[c];
    for (std::int64_t c = 0; c < channels; ++c)
      y[c] /= static_cast<float>(pixels);
  }
}

MNEME_KERNEL(max_pool, (const pool_shape& shape, const float* x, float* y, std::uint8_t* places), (shape, x, y, places))
MNEME_KERNEL(max_pool_back, (const pool_shape& shape, const float* dy, const std::uint8_t* places, float* dx),
             (shape, dy, places, dx))
MNEME_KERNEL(mean_pool, (std::int64_t rows, std::int64_t pixels, std::int64_t channels, const float* x, float* y),
             (rows, pixels, channels, x, y))

} // namespace

void max_pool(const pool_shape& shape, const float* x, float* y, std::uint8_t* places) {
  best_max_pool(shape, x, y, places);
}
void max_pool_back(const pool_shape& shape, const float* dy, const std::uint8_t* places, float* dx) {
  best_max_pool_back(shape, dy, places, dx);
}
void mean_pool(std::int64_t rows, std::int64_t pixels, std::int64_t channels, const float* x, float* y) {
  best_mean_pool(rows, pixels, channels, x, y);
}

} // namespace mneme::kernels
