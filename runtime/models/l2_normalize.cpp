#include "runtime/models/l2_normalize.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>
namespace mneme {

at::Tensor l2_rows(const at::Tensor& rows) {
  constexpr double norm_min = 1e-12;
  return rows / at::linalg_vector_norm(rows, 2, at::IntArrayRef{-1}, true).clamp_min(norm_min);
}

} // namespace mneme
