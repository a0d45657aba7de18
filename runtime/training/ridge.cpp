#include "runtime/training/ridge.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/triangle.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cholesky_solve.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/linalg_ldl_factor_ex.h>
#include <ATen/ops/linalg_ldl_solve.h>
#include <stdexcept>
namespace mneme {

at::Tensor solve_ridge(const at::Tensor& gram, const at::Tensor& sums, double ridge) {
  MNEME_CHECK(gram.scalar_type() == at::kDouble && sums.scalar_type() == at::kDouble, gram.scalar_type());
  MNEME_CHECK(ridge > 0.0, ridge);
  auto matrix = square(gram, sums.size(1)); // [M, M]
  matrix.diagonal().add_(ridge);
  {
    const auto [factor, failed] = at::linalg_cholesky_ex(matrix, /*upper=*/false, /*check_errors=*/false);
    if (failed.item<int>() == 0)
      return at::cholesky_solve(sums.t(), factor).t().contiguous();
  }
  const auto [factor, pivots, failed] = at::linalg_ldl_factor_ex(matrix, /*hermitian=*/false, /*check_errors=*/false);
  if (failed.item<int>() != 0)
    throw std::runtime_error("the Gram matrix plus the ridge is singular; a larger strategy.ridge may help");
  return at::linalg_ldl_solve(factor, pivots, sums.t().contiguous(), /*hermitian=*/false).t().contiguous();
}

double mean_diagonal(const at::Tensor& gram) {
  const auto width = triangle_width(gram.numel());
  double sum = 0.0;
  for (const auto& panel : panels_of(gram, width))
    sum += panel.values.narrow(1, panel.first, panel.values.size(0)).diagonal().sum().item<double>();
  return width > 0 ? sum / static_cast<double>(width) : 0.0;
}

} // namespace mneme
