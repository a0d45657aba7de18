/// ridge: linear readouts, solved in closed form from a Gram matrix and class sums in float64.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme {

/// Ridge regression: W = (G + ridge I)^-1 C. Factors G + ridge I by Cholesky, or by LDL^T if the matrix is not positive
/// definite. Privacy noise or a clamped estimate of G may cause this.
/// @param gram a triangle (triangle.hpp) of G [M, M] @param sums [C, M] float64: C transposed @param ridge > 0
/// @return W transposed, [C, M] float64. Throws std::runtime_error if both factorizations fail.
[[nodiscard]] at::Tensor solve_ridge(const at::Tensor& gram, const at::Tensor& sums, double ridge);

/// Mean of the diagonal of a triangle. A relative ridge is a multiple of this mean.
[[nodiscard]] double mean_diagonal(const at::Tensor& gram);

} // namespace mneme
