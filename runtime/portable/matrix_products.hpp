/// matrix_products: multiply_matrices() and dot_product(). Terms are added one after another with fused multiply-add
/// (AVX2 with FMA). An element has the same bits on every machine and at any position in the matrix.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme::portable {

/// c = beta * c + alpha * a b; with beta = 0 the old c is not read. float32 or float64, all of one type; integers are
/// summed exactly.
/// @param a [M, K] @param b [K, N] @param c [M, N], any strides; must not overlap a or b
void multiply_matrices(const at::Tensor& a, const at::Tensor& b, at::Tensor c, double alpha = 1.0, double beta = 0.0);

/// Sum of a[i] * b[i] over `n` float64 numbers, in four interleaved partial sums.
[[nodiscard]] double dot_product(const double* a, const double* b, std::int64_t n);

} // namespace mneme::portable
