#include "runtime/portable/decompositions.hpp"
#include "runtime/portable/replaced_kernels.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <stdexcept>
// Uses Eigen's kernels on one thread. The kernels are compiled for any x86-64 processor, which fixes the bits of
// results.
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_MPL2_ONLY
#include <Eigen/Dense>
namespace mneme::portable {
namespace {

using matrix = Eigen::MatrixXd;
using row_major = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using matrix_and_info = std::tuple<at::Tensor, at::Tensor>;

matrix matrix_of(const at::Tensor& given, const char* name) {
  if (given.dim() != 2)
    throw std::runtime_error(std::string(name) + " of stacked matrices is not portable");
  const auto values = given.to(at::kDouble).contiguous();
  return Eigen::Map<const row_major>(values.const_data_ptr<double>(), values.size(0), values.size(1));
}

at::Tensor tensor_of(const matrix& values, const at::Tensor& like) {
  auto out = at::empty({values.rows(), values.cols()}, like.options().dtype(at::kDouble));
  Eigen::Map<row_major>(out.mutable_data_ptr<double>(), values.rows(), values.cols()) = values;
  return out.to(like.scalar_type());
}
/// tensor_of() for a column vector.
at::Tensor vector_of(const Eigen::VectorXd& values, const at::Tensor& like) {
  return tensor_of(values, like).squeeze(1);
}

matrix_and_info cholesky_ex(const at::Tensor& given, bool upper, bool check_errors) {
  const Eigen::LLT<matrix> parts(matrix_of(given, "linalg_cholesky_ex"));
  const matrix lower = parts.matrixL();
  // Eigen accepts a NaN on the diagonal as positive, so it is checked.
  const int info = parts.info() == Eigen::Success && lower.diagonal().allFinite() ? 0 : 1;
  if (check_errors && info != 0)
    throw std::runtime_error("linalg_cholesky: the matrix is not positive definite");
  return {tensor_of(upper ? matrix(lower.transpose()) : lower, given), at::full({}, info, at::kInt)};
}

std::tuple<at::Tensor&, at::Tensor&> cholesky_ex_out(const at::Tensor& given, bool upper, bool check_errors,
                                                     at::Tensor& factor, at::Tensor& info) {
  const auto [result, failed] = cholesky_ex(given, upper, check_errors);
  factor.resize_(result.sizes()).copy_(result);
  info.resize_({}).copy_(failed);
  return {factor, info};
}

/// Returns X with L L^T X = B.
at::Tensor cholesky_solve(const at::Tensor& right, const at::Tensor& factor, bool upper) {
  const matrix lower = matrix_of(upper ? factor.t() : factor, "cholesky_solve");
  matrix x = matrix_of(right, "cholesky_solve");
  lower.triangularView<Eigen::Lower>().solveInPlace(x);
  lower.transpose().triangularView<Eigen::Upper>().solveInPlace(x);
  return tensor_of(x, right);
}

/// Returns the eigenvalues in ascending order and the eigenvectors as columns.
matrix_and_info eigenvectors(const at::Tensor& given, std::string_view half, bool) {
  const bool upper = half == "U" || half == "u";
  const Eigen::SelfAdjointEigenSolver<matrix> parts(matrix_of(upper ? given.t() : given, "linalg_eigh"));
  if (parts.info() != Eigen::Success)
    throw std::runtime_error("linalg_eigh: no convergence; the matrix may hold values that are not finite");
  return {vector_of(parts.eigenvalues(), given), tensor_of(parts.eigenvectors(), given)};
}

using singular_parts = std::tuple<at::Tensor, at::Tensor, at::Tensor>; // U [M, K], S [K] descending, V^T [K, N]

singular_parts singular_values(const at::Tensor& given, bool full_matrices, bool, std::optional<std::string_view>) {
  if (full_matrices)
    throw std::runtime_error("linalg_svd with full matrices is not portable; full_matrices = false is");
  const Eigen::JacobiSVD<matrix> parts(matrix_of(given, "linalg_svd"), Eigen::ComputeThinU | Eigen::ComputeThinV);
  if (parts.info() != Eigen::Success) // on failure the results are uninitialized
    throw std::runtime_error("linalg_svd: no convergence; the matrix may hold values that are not finite");
  return {tensor_of(parts.matrixU(), given), vector_of(parts.singularValues(), given),
          tensor_of(parts.matrixV().transpose(), given)};
}

/// Returns Q [M, K] and R [K, N]; the diagonal of R is not negative.
matrix_and_info orthogonal(const at::Tensor& given, std::string_view mode) {
  if (mode != "reduced")
    throw std::runtime_error("linalg_qr with mode '" + std::string(mode) + "' is not portable; 'reduced' is");
  const matrix values = matrix_of(given, "linalg_qr");
  const Eigen::HouseholderQR<matrix> parts(values);
  const auto k = std::min(values.rows(), values.cols());
  matrix q = parts.householderQ() * matrix::Identity(values.rows(), k);
  matrix r = parts.matrixQR().topRows(k).triangularView<Eigen::Upper>();
  for (Eigen::Index i = 0; i < k; ++i)
    if (r(i, i) < 0.0) {
      q.col(i) = -q.col(i);
      r.row(i) = -r.row(i);
    }
  return {tensor_of(q, given), tensor_of(r, given)};
}

} // namespace

void register_decompositions() {
  // Cache sizes determine the blocks of products and thus the order of sums. This code fixes the cache sizes, so that
  // bits do not depend on the machine.
  constexpr std::ptrdiff_t kib = 1024;
  Eigen::setCpuCacheSizes(32 * kib, 512 * kib, 4096 * kib);
  replace("aten::_linalg_eigh", "", &eigenvectors);
  replace("aten::_linalg_svd", "", &singular_values);
  replace("aten::linalg_qr", "", &orthogonal);
  replace("aten::linalg_cholesky_ex", "", &cholesky_ex);
  replace("aten::linalg_cholesky_ex", "L", &cholesky_ex_out);
  replace("aten::_cholesky_solve_helper", "", &cholesky_solve);
}

} // namespace mneme::portable
