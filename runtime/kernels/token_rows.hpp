/// Kernels of transformers on a CPU: normalised rows, GELU and softmax. An element's bits depend on its own row only.
#pragma once
#include <cstdint>
namespace mneme::kernels {

// All matrices are row-major float32 and contiguous.

/// y = x Phi(x), Phi the normal distribution function (Hendrycks and Gimpel 2016), to 2e-7 of |x|; y may be x.
void gelu(float* y, const float* x, std::int64_t n);
/// dx = d (Phi(x) + x phi(x)); dx may be d.
void gelu_backward(float* dx, const float* d, const float* x, std::int64_t n);

/// Every row becomes softmax(scale * row).
void softmax_rows(float* x, std::int64_t rows, std::int64_t columns, float scale);

/// Layer normalisation (Ba et al. 2016) of every row: y = (x - mean) / sqrt(variance + epsilon) * weight + bias.
struct normalised_rows {
  const float* x = nullptr;
  const float *weight = nullptr, *bias = nullptr; ///< [columns]
  std::int64_t rows = 0, columns = 0;
  float epsilon = 1e-6F;
};
/// `statistics` [rows, 2] becomes mean and 1 / sqrt(variance + epsilon) of every row.
void normalise_rows(float* y, float* statistics, const normalised_rows& rows);
/// dx, and sums over rows of d and d (x - mean) / sqrt(variance + epsilon), added to `d_bias` and `d_weight` [columns];
/// these are both null where not wanted, and so may be dx.
void normalise_rows_backward(float* dx, double* d_weight, double* d_bias, const float* d, const float* statistics,
                             const normalised_rows& rows);

} // namespace mneme::kernels
