/// The sigmoid and other activations on a CPU, and their slopes. An element's bits depend on itself only; NaN stays.
#pragma once
#include <cstdint>
namespace mneme::kernels {

/// y = 1 / (1 + e^-x), to 2e-7 of y; y may be x.
void sigmoid(float* y, const float* x, std::int64_t n);
/// dx = d y (1 - y); dx may be d.
void sigmoid_backward(float* dx, const float* d, const float* y, std::int64_t n);

/// y = tanh(x), to 3e-7 of y; y may be x.
void hyperbolic_tangent(float* y, const float* x, std::int64_t n);
/// dx = d (1 - y^2); dx may be d.
void hyperbolic_tangent_backward(float* dx, const float* d, const float* y, std::int64_t n);

/// y = x / (1 + e^-x) (Elfwing et al. 2018, eq. 12), to 2e-7 of y; y may be x.
void silu(float* y, const float* x, std::int64_t n);
/// dx = d s (1 + x (1 - s)) with s = sigmoid(x); dx may be d.
void silu_backward(float* dx, const float* d, const float* x, std::int64_t n);

/// y = x where x > 0, else slope x; y may be x.
void leaky_relu(float* y, const float* x, std::int64_t n, float slope);
/// dx = d where x > 0, else slope d; dx may be d.
void leaky_relu_backward(float* dx, const float* d, const float* x, std::int64_t n, float slope);

} // namespace mneme::kernels
