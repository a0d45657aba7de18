/// sigmoid: the sigmoid, its gradient, and tanh on a CPU. An element's bits depend on its input only; NaN stays NaN.
#pragma once
#include <cstdint>
namespace mneme::kernels {

/// y = 1 / (1 + e^-x), with a relative error of at most 2e-7; y may be x.
void sigmoid(float* y, const float* x, std::int64_t n);
/// dx = d y (1 - y); dx may be d.
void sigmoid_backward(float* dx, const float* d, const float* y, std::int64_t n);

/// y = tanh(x), with a relative error of at most 3e-7; y may be x.
void hyperbolic_tangent(float* y, const float* x, std::int64_t n);

} // namespace mneme::kernels
