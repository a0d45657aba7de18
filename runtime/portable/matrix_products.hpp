/// matrix_products: multiply_matrices() and dot_product(), sums of products whose terms are added one after the other,
/// each by one fused multiplication and addition (AVX2 with FMA). An element has the same bits on every machine,
/// wherever it lies in the matrix.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme::portable {

/// c = beta * c + alpha * a b, where beta = 0 forgets what c holds. float32 or float64, all alike; whole numbers are
/// summed as such.
/// @param a [M, K] @param b [K, N] @param c [M, N], any strides; it overlaps neither a nor b
void multiply_matrices(const at::Tensor& a, const at::Tensor& b, at::Tensor c, double alpha = 1.0, double beta = 0.0);

/// The sum of a[i] * b[i] over vectors of `n` float64 numbers, in four interleaved sums.
[[nodiscard]] double dot_product(const double* a, const double* b, std::int64_t n);

} // namespace mneme::portable
