#include "runtime/portable/decompositions.hpp"
#include "runtime/portable/matrix_products.hpp"
#include "runtime/portable/replaced_kernels.hpp"
#include "runtime/portable/target.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <cmath>
#include <stdexcept>
namespace mneme::portable {
namespace {

using factor_and_info = std::tuple<at::Tensor, at::Tensor>;

/// A single matrix as contiguous float64.
at::Tensor matrix_of(const at::Tensor& given, const char* name) {
  if (given.dim() != 2)
    throw std::runtime_error(std::string(name) + " of stacked matrices is not portable");
  return given.to(at::kDouble).contiguous();
}

/// The lower factor of a symmetric positive matrix, in place, row by row (Golub and Van Loan, Matrix Computations,
/// algorithm 4.2.1). Returns the first row that has no root, from 1, or 0.
int factorise(double* matrix, std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i) {
    double* const row = matrix + i * width;
    for (std::int64_t j = 0; j <= i; ++j) {
      const double* const other = matrix + j * width;
      const double left = row[j] - dot_product(row, other, j);
      if (j < i) {
        row[j] = left / other[j];
        continue;
      }
      if (!(left > 0.0))
        return static_cast<int>(i) + 1;
      row[i] = std::sqrt(left);
    }
    for (auto j = i + 1; j < width; ++j)
      row[j] = 0.0;
  }
  return 0;
}

factor_and_info cholesky_ex(const at::Tensor& given, bool upper, bool check_errors) {
  auto factor = matrix_of(given, "linalg_cholesky_ex").clone();
  const int info = factorise(factor.mutable_data_ptr<double>(), factor.size(0));
  if (check_errors && info != 0)
    throw std::runtime_error("linalg_cholesky: the matrix has no factor: its row " + std::to_string(info) +
                             " has no root");
  if (upper)
    factor = factor.t().contiguous();
  return {factor.to(given.scalar_type()), at::full({}, info, at::kInt)};
}

std::tuple<at::Tensor&, at::Tensor&> cholesky_ex_out(const at::Tensor& given, bool upper, bool check_errors,
                                                     at::Tensor& factor, at::Tensor& info) {
  const auto [result, failed] = cholesky_ex(given, upper, check_errors);
  factor.resize_(result.sizes()).copy_(result);
  info.resize_({}).copy_(failed);
  return {factor, info};
}

/// X with L L^T X = B, column by column of B.
at::Tensor cholesky_solve(const at::Tensor& right, const at::Tensor& factor, bool upper) {
  const auto lower = matrix_of(upper ? factor.t() : factor, "cholesky_solve");
  const auto across = lower.t().contiguous();
  auto columns = matrix_of(right, "cholesky_solve").t().contiguous().clone(); // [right hand sides, M]
  const auto width = lower.size(0);
  const double *l = lower.const_data_ptr<double>(), *u = across.const_data_ptr<double>();
  for (std::int64_t c = 0; c < columns.size(0); ++c) {
    double* const x = columns.mutable_data_ptr<double>() + c * width;
    for (std::int64_t i = 0; i < width; ++i)
      x[i] = (x[i] - dot_product(l + i * width, x, i)) / l[i * width + i];
    for (auto i = width - 1; i >= 0; --i)
      x[i] = (x[i] - dot_product(u + i * width + i + 1, x + i + 1, width - i - 1)) / l[i * width + i];
  }
  return columns.t().contiguous().to(right.scalar_type());
}

// -- eigenvectors -----------------------------------------------------------------------------------------------------

/// x and y turned by the angle whose cosine and sine are given.
MNEME_PORTABLE void turn(double c, double s, double& x, double& y) {
  const double left = x, right = y;
  x = __builtin_fma(c, left, -(s * right));
  y = __builtin_fma(s, left, c * right);
}

/// One rotation of rows and columns p and q of a symmetric matrix, after which its element (p, q) is 0, and of the rows
/// of `turned` (Golub and Van Loan, algorithm 8.4.1).
MNEME_PORTABLE void rotate(double* a, double* turned, std::int64_t n, std::int64_t p, std::int64_t q) {
  const double between = a[p * n + q];
  if (between == 0.0)
    return;
  const double tau = (a[q * n + q] - a[p * n + p]) / (2.0 * between);
  const double t = (tau >= 0.0 ? 1.0 : -1.0) / (std::fabs(tau) + std::sqrt(__builtin_fma(tau, tau, 1.0)));
  const double c = 1.0 / std::sqrt(__builtin_fma(t, t, 1.0)), s = t * c;
  for (std::int64_t k = 0; k < n; ++k)
    turn(c, s, a[k * n + p], a[k * n + q]);
  for (std::int64_t k = 0; k < n; ++k)
    turn(c, s, a[p * n + k], a[q * n + k]);
  for (std::int64_t k = 0; k < n; ++k)
    turn(c, s, turned[p * n + k], turned[q * n + k]);
  a[p * n + q] = a[q * n + p] = 0.0;
}

MNEME_PORTABLE double beside_diagonal(const double* a, std::int64_t n) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < i; ++j)
      sum = __builtin_fma(a[i * n + j], a[i * n + j], sum);
  return sum;
}

/// Values ascending, and vectors as columns, by Jacobi's rotations in the order of rows.
factor_and_info eigenvectors(const at::Tensor& given, std::string_view half, bool) {
  auto a = matrix_of(half == "U" || half == "u" ? given.t() : given, "linalg_eigh");
  a = a.tril() + a.tril(-1).t();
  const auto n = a.size(0);
  auto turned = at::eye(n, a.options());
  double *matrix = a.mutable_data_ptr<double>(), *vectors = turned.mutable_data_ptr<double>();
  constexpr int sweeps_max = 60;
  for (int sweep = 0; sweep < sweeps_max && beside_diagonal(matrix, n) > 0.0; ++sweep)
    for (std::int64_t p = 0; p < n; ++p)
      for (auto q = p + 1; q < n; ++q)
        rotate(matrix, vectors, n, p, q);
  const auto [values, order] = at::sort(a.diagonal().contiguous(), /*stable=*/true, 0, false);
  return {values.to(given.scalar_type()), turned.index_select(0, order).t().contiguous().to(given.scalar_type())};
}

// -- singular values --------------------------------------------------------------------------------------------------

/// Turns columns p and q, which lie as rows of `width` numbers, to right angles, and those of `turned` with them
/// (Hestenes 1958; Golub and Van Loan, 8.6.3). False: they were orthogonal.
MNEME_PORTABLE bool make_orthogonal(double* columns, std::int64_t width, double* turned, std::int64_t n, std::int64_t p,
                                    std::int64_t q) {
  constexpr double smallest = 1e-15;
  double *const left = columns + p * width, *const right = columns + q * width;
  const double between = dot_product(left, right, width);
  const double first = dot_product(left, left, width), second = dot_product(right, right, width);
  if (std::fabs(between) <= smallest * std::sqrt(first) * std::sqrt(second))
    return false;
  const double tau = (second - first) / (2.0 * between);
  const double t = (tau >= 0.0 ? 1.0 : -1.0) / (std::fabs(tau) + std::sqrt(__builtin_fma(tau, tau, 1.0)));
  const double c = 1.0 / std::sqrt(__builtin_fma(t, t, 1.0)), s = t * c;
  for (std::int64_t k = 0; k < width; ++k)
    turn(c, s, left[k], right[k]);
  for (std::int64_t k = 0; k < n; ++k)
    turn(c, s, turned[p * n + k], turned[q * n + k]);
  return true;
}

using singular_parts = std::tuple<at::Tensor, at::Tensor, at::Tensor>; // U [M, K], S [K] descending, V^T [K, N]

/// The parts of a matrix [M, N] with M >= N, by one-sided rotations in the order of columns. U has zeros where S has.
singular_parts of_tall(const at::Tensor& matrix) {
  auto columns = matrix.t().contiguous().clone(); // [N, M]
  const auto n = columns.size(0), m = columns.size(1);
  auto turned = at::eye(n, columns.options());
  double *values = columns.mutable_data_ptr<double>(), *vectors = turned.mutable_data_ptr<double>();
  constexpr int sweeps_max = 60;
  bool goes_on = true;
  for (int sweep = 0; sweep < sweeps_max && goes_on; ++sweep) {
    goes_on = false;
    for (std::int64_t p = 0; p < n; ++p)
      for (auto q = p + 1; q < n; ++q)
        goes_on = make_orthogonal(values, m, vectors, n, p, q) || goes_on;
  }
  auto lengths = at::empty({n}, columns.options());
  for (std::int64_t j = 0; j < n; ++j)
    lengths.mutable_data_ptr<double>()[j] = std::sqrt(dot_product(values + j * m, values + j * m, m));
  const auto [sorted, order] = at::sort(lengths, /*stable=*/true, 0, /*descending=*/true);
  const auto divisors = at::where(sorted > 0, sorted, at::ones_like(sorted)).unsqueeze(1);
  return {(columns.index_select(0, order) / divisors).t().contiguous(), sorted, turned.index_select(0, order)};
}

singular_parts singular_values(const at::Tensor& given, bool full_matrices, bool, std::optional<std::string_view>) {
  if (full_matrices)
    throw std::runtime_error("linalg_svd with full matrices is not portable; full_matrices = false is");
  const auto matrix = matrix_of(given, "linalg_svd");
  const bool is_tall = matrix.size(0) >= matrix.size(1);
  auto [u, s, v] = of_tall(is_tall ? matrix : matrix.t());
  if (!is_tall)
    std::tie(u, v) = std::pair(v.t().contiguous(), u.t().contiguous());
  const auto type = given.scalar_type();
  return {u.to(type), s.to(type), v.to(type)};
}

/// Columns made orthogonal one after the other, each twice (Giraud, Langou and Rozloznik 2005): Q [M, K], R [K, N].
MNEME_PORTABLE factor_and_info orthogonal(const at::Tensor& given, std::string_view mode) {
  if (mode != "reduced")
    throw std::runtime_error("linalg_qr with mode '" + std::string(mode) + "' is not portable; 'reduced' is");
  auto columns = matrix_of(given.t(), "linalg_qr").clone(); // [N, M]
  const auto n = columns.size(0), m = columns.size(1), k = std::min(n, m);
  auto r = at::zeros({k, n}, columns.options());
  double *q = columns.mutable_data_ptr<double>(), *upper = r.mutable_data_ptr<double>();
  for (std::int64_t j = 0; j < n; ++j) {
    double* const column = q + j * m;
    for (int pass = 0; pass < 2; ++pass)
      for (std::int64_t i = 0; i < std::min(j, k); ++i) {
        const double share = dot_product(q + i * m, column, m);
        upper[i * n + j] += share;
        for (std::int64_t p = 0; p < m; ++p)
          column[p] = __builtin_fma(-share, q[i * m + p], column[p]);
      }
    if (j >= k)
      continue;
    const double length = std::sqrt(dot_product(column, column, m));
    upper[j * n + j] = length;
    for (std::int64_t p = 0; p < m && length > 0.0; ++p)
      column[p] /= length;
  }
  return {columns.narrow(0, 0, k).t().contiguous().to(given.scalar_type()), r.to(given.scalar_type())};
}

} // namespace

void register_decompositions() {
  replace("aten::_linalg_eigh", "", &eigenvectors);
  replace("aten::_linalg_svd", "", &singular_values);
  replace("aten::linalg_qr", "", &orthogonal);
  replace("aten::linalg_cholesky_ex", "", &cholesky_ex);
  replace("aten::linalg_cholesky_ex", "L", &cholesky_ex_out);
  replace("aten::_cholesky_solve_helper", "", &cholesky_solve);
}

} // namespace mneme::portable
