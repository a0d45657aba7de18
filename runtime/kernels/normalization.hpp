/// normalization: column statistics of matrices on a CPU, and the steps of batch and group normalization that use them.
#pragma once
#include <cstdint>
namespace mneme::kernels {

// x, d and y are [rows, columns] float32, row-major. Sums are float32 within short blocks of rows and float64 over
// blocks.

/// out[c] = scale * sum over rows of in[row, c]; if `add`, the value is added to out[c].
void sum_columns(float* out, const float* in, std::int64_t rows, std::int64_t columns, float scale, bool add);
/// sum_columns() for the gradient d of a ReLU with output y: sets d to 0 where y is not positive.
void sum_active_columns(float* out, float* d, const float* y, std::int64_t rows, std::int64_t columns, float scale,
                        bool add);
/// Sums of x - pivot and of its square, per column, where pivot is the first row.
void shifted_moments(const float* x, std::int64_t rows, std::int64_t columns, double* sums, double* squares);
/// y = x * scale[c] + shift[c], followed by ReLU if `relu`.
void scale_columns(const float* x, std::int64_t rows, std::int64_t columns, const float* scale, const float* shift,
                   bool relu, float* y);

/// Inputs of the gradient of a normalization. `y` is the output of a ReLU after the normalization, or null. If given, d
/// counts only where y > 0.
struct normalized {
  const float* d = nullptr;
  const float* x = nullptr;
  const float* y = nullptr;
  const float* mean = nullptr; ///< [columns]
  std::int64_t rows = 0, columns = 0;
};
/// Sums over rows of d and of d * (x - mean), per column.
void sum_gradients(const normalized& in, double* sums, double* products);
/// dx = d * scale[c] + (x - mean[c]) * slope[c] + shift[c]
void scale_gradients(const normalized& in, const float* scale, const float* slope, const float* shift, float* dx);

} // namespace mneme::kernels
