/// ridge: read-outs solved in closed form from a Gram matrix and class sums, in float64.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme {

/// W = (G + ridge I)^-1 C. G + ridge I is factored by Cholesky, or by LDL^T where it is not positive definite, as it
/// may be under privacy noise or a clamped estimate.
/// @param gram a triangle (triangle.hpp) of G [M, M] @param sums [C, M] float64: C transposed @param ridge > 0
/// @return W transposed, [C, M] float64. Throws std::runtime_error where neither factorisation exists.
[[nodiscard]] at::Tensor solve_ridge(const at::Tensor& gram, const at::Tensor& sums, double ridge);

/// The trace of a triangle over its width: what a ridge is measured against.
[[nodiscard]] double mean_diagonal(const at::Tensor& gram);

} // namespace mneme
