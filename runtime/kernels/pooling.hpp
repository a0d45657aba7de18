/// Pooling of channels-last images on a CPU.
#pragma once
#include <cstdint>
namespace mneme::kernels {

/// y [rows, channels] = the mean of x [rows, pixels, channels], summed pixel by pixel.
void mean_pool(std::int64_t rows, std::int64_t pixels, std::int64_t channels, const float* x, float* y);

} // namespace mneme::kernels
