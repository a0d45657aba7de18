/// pooling: pooling of channels-last images on a CPU.
#pragma once
#include <cstdint>
namespace mneme::kernels {

/// y [rows, channels] = mean of x [rows, pixels, channels] over pixels, summed in pixel order.
void mean_pool(std::int64_t rows, std::int64_t pixels, std::int64_t channels, const float* x, float* y);

} // namespace mneme::kernels
