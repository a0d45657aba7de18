/// The sigmoid with its slope, and tanh, on a CPU. An element's bits depend on itself only; NaN stays.
#pragma once
#include <cstdint>
namespace mneme::kernels {

/// y = 1 / (1 + e^-x), to 2e-7 of y; y may be x.
void sigmoid(float* y, const float* x, std::int64_t n);
/// dx = d y (1 - y); dx may be d.
void sigmoid_backward(float* dx, const float* d, const float* y, std::int64_t n);

/// y = tanh(x), to 3e-7 of y; y may be x.
void hyperbolic_tangent(float* y, const float* x, std::int64_t n);

} // namespace mneme::kernels
