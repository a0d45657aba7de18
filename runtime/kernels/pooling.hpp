/// Pooling of channels-last images on a CPU.
#pragma once
#include <cstdint>
namespace mneme::kernels {

/// Square windows over images [rows, height, width, channels].
struct pool_shape {
  std::int64_t rows = 0, height = 0, width = 0, channels = 0;
  std::int64_t window = 2, stride = 2, padding = 0;
  [[nodiscard]] std::int64_t out_height() const { return (height + 2 * padding - window) / stride + 1; }
  [[nodiscard]] std::int64_t out_width() const { return (width + 2 * padding - window) / stride + 1; }
};
/// y: the largest pixel of each window, the first of equals (or the last NaN, as in PyTorch); `places`: which one
/// it is, counted along the window's rows, those of the padding too. Both [rows, out_height, out_width, channels].
void max_pool(const pool_shape& shape, const float* x, float* y, std::uint8_t* places);
/// dx: what the windows send to the pixels that won, summed window by window.
void max_pool_back(const pool_shape& shape, const float* dy, const std::uint8_t* places, float* dx);
/// y [rows, channels] = the mean of x [rows, pixels, channels], summed pixel by pixel.
void mean_pool(std::int64_t rows, std::int64_t pixels, std::int64_t channels, const float* x, float* y);

} // namespace mneme::kernels
