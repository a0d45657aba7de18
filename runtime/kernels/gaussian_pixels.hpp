/// gaussian_pixels: pixels of synthetic images, which are a mean plus normal noise.
#pragma once
#include "runtime/base/rng.hpp"
#include <span>
namespace mneme::kernels {

/// pixel[i] = floor(128.5 + 32 * (mean[i] + z_i)), clamped to [0, 255], where z_i is the i-th normal() of the stream.
/// Logarithms, sines and cosines are accurate to 1e-10, which nearly always determines the floor.
/// @return false if a value is too close to an integer; then the caller must compute the pixels exactly
[[nodiscard]] bool gaussian_pixels(std::span<std::uint8_t> pixels, const float* mean, const stream_name& name);

} // namespace mneme::kernels
