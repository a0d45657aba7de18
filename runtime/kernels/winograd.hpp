/// Convolutions with kernels of 3 x 3 and stride 1 by fewer products (Winograd 1980).
#pragma once
#include "runtime/kernels/convolution.hpp"
namespace mneme::kernels {

/// True if the functions below take this shape and are faster than the direct ones, however many images there are.
[[nodiscard]] bool winograd_pays(const conv_shape& shape);
/// As convolve(), convolve_back() and correlate(). @pre winograd_pays(shape)
void winograd_convolve(const conv_shape& shape, const float* x, const float* w, const float* bias, bool relu, float* y,
                       scratch& memory);
void winograd_convolve_back(const conv_shape& shape, const float* dy, const float* w, float* dx, bool add,
                            scratch& memory);
void winograd_correlate(const conv_shape& shape, const float* x, const float* dy, float* dw, float scale, bool add,
                        scratch& memory);

} // namespace mneme::kernels
