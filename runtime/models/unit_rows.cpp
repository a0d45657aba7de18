#include "runtime/models/unit_rows.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>
namespace mneme {
namespace {

constexpr double norm_min = 1e-12;

at::Tensor norms_of(const at::Tensor& rows) {
  return at::linalg_vector_norm(rows, 2, at::IntArrayRef{-1}, true).clamp_min(norm_min);
}

} // namespace

unit_rows unit_rows_of(const at::Tensor& whole) {
  auto norms = norms_of(whole);
  return {whole / norms, norms};
}

at::Tensor through_unit(const unit_rows& rows, const at::Tensor& d_unit) {
  return (d_unit - rows.rows * (rows.rows * d_unit).sum(1, true)) / rows.norms;
}

at::Tensor directions_of(const at::Tensor& rows) { return rows / norms_of(rows); }

} // namespace mneme
