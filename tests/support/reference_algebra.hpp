/// reference_algebra: float64 matrices with Eigen, which shares no code with LibTorch. They are the reference for Gram
/// matrices, statistics and ridge solutions.
#pragma once
#include "runtime/base/rng.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include <Eigen/Dense>
namespace mneme::test {

using matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Converts a tensor [n, m], or [m] as one row, of any type.
inline matrix matrix_of(const at::Tensor& tensor) {
  const auto values = tensor.to(at::kDouble).contiguous();
  const auto rows = values.dim() == 2 ? values.size(0) : 1;
  return Eigen::Map<const matrix>(values.const_data_ptr<double>(), rows,
                                  values.numel() / std::max<std::int64_t>(rows, 1));
}
/// Converts a matrix to a tensor [n, m] float64.
inline at::Tensor tensor_of(const matrix& values) {
  auto made = at::empty({values.rows(), values.cols()}, at::kDouble);
  Eigen::Map<matrix>(made.mutable_data_ptr<double>(), values.rows(), values.cols()) = values;
  return made;
}

/// Standard normal values.
inline matrix drawn_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  matrix made(rows, columns);
  rng_stream draw({.seed = seed, .purpose = first_method_purpose});
  for (std::int64_t i = 0; i < made.size(); ++i)
    made.data()[i] = draw.normal();
  return made;
}

inline matrix gram_of(const matrix& rows) { return rows.transpose() * rows; }

/// |a - b| / |b|, in Frobenius norms.
inline double relative_difference(const at::Tensor& a, const matrix& b) { return (matrix_of(a) - b).norm() / b.norm(); }

} // namespace mneme::test
