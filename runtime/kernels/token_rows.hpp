/// token_rows: layer normalization, GELU and softmax on a CPU. An element's bits depend on its own row only.
#pragma once
#include <cstdint>
namespace mneme::kernels {

// All matrices are row-major float32 and contiguous.

/// y = x Phi(x), where Phi is the normal distribution function (Hendrycks and Gimpel 2016), with an error of at most
/// 2e-7 |x|; y may be x.
void gelu(float* y, const float* x, std::int64_t n);
/// dx = d (Phi(x) + x phi(x)), where phi is the density of Phi; dx may be d.
void gelu_backward(float* dx, const float* d, const float* x, std::int64_t n);

/// Replaces every row by softmax(scale * row).
void softmax_rows(float* x, std::int64_t rows, std::int64_t columns, float scale);

/// Layer normalization (Ba et al. 2016) of every row: y = (x - mean) / sqrt(variance + epsilon) * weight + bias.
struct normalized_rows {
  const float* x = nullptr;
  const float *weight = nullptr, *bias = nullptr; ///< [columns]
  std::int64_t rows = 0, columns = 0;
  float epsilon = 1e-6F;
};
/// Writes y, and mean and 1 / sqrt(variance + epsilon) of every row to `statistics` [rows, 2].
void normalize_rows(float* y, float* statistics, const normalized_rows& rows);
/// Writes dx and adds the sums over rows of d and d (x - mean) / sqrt(variance + epsilon) to `d_bias` and `d_weight`
/// [columns]. dx may be null. `d_weight` and `d_bias` may both be null.
void normalize_rows_backward(float* dx, double* d_weight, double* d_bias, const float* d, const float* statistics,
                             const normalized_rows& rows);

} // namespace mneme::kernels
