/// gaussian_pixels: the pixels of a made image, mean plus normal noise, many at a time.
#pragma once
#include "runtime/base/rng.hpp"
#include <span>
namespace mneme::kernels {

/// pixel[i] = floor(128.5 + 32 * (mean[i] + z_i)), within 0 .. 255, where z_i is the i-th normal() of the stream with
/// this name. Logarithms, sines and cosines here are good to 1e-10 only, which nearly always decides the floor.
/// @return false if a value is so near to an integer that it may not: then the caller computes the pixels again
[[nodiscard]] bool gaussian_pixels(std::span<std::uint8_t> pixels, const float* mean, const stream_name& name);

} // namespace mneme::kernels
