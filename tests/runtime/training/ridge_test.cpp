#include "runtime/base/triangle.hpp"
#include "runtime/training/ridge.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;

namespace {

double relative(const at::Tensor& a, const at::Tensor& b) { return ((a - b).norm() / b.norm()).item<double>(); }

struct problem {
  at::Tensor h = at::randn({90, 40}, at::kDouble), y = at::randn({90, 3}, at::kDouble);
  [[nodiscard]] at::Tensor gram() const { return h.t().mm(h); }
  [[nodiscard]] at::Tensor sums() const { return y.t().mm(h); } // [C, M]
};

} // namespace

TEST_CASE("a ridge solve satisfies the normal equations and agrees with the singular value decomposition", "[ridge]") {
  const problem of;
  const auto w = solve_ridge(triangle_of(of.gram()), of.sums(), 2.5);
  const auto residual = of.gram().mm(w.t()) + 2.5 * w.t() - of.sums().t();
  CHECK((residual.norm() / of.sums().norm()).item<double>() < 1e-12);
  const auto [u, s, vh] = at::linalg_svd(of.h, false);
  const auto expected = vh.t().mm((s / (s * s + 2.5)).unsqueeze(1) * u.t().mm(of.y));
  CHECK(relative(w.t(), expected) < 1e-12);
}

TEST_CASE("a large ridge leaves class sums over it, a small one least squares; scales cancel", "[ridge]") {
  const problem of;
  CHECK(relative(solve_ridge(triangle_of(of.gram()), of.sums(), 1e14), of.sums() / 1e14) < 1e-9);
  const auto [least, r, rank, values] = at::linalg_lstsq(of.h, of.y);
  CHECK(relative(solve_ridge(triangle_of(of.gram()), of.sums(), 1e-10).t(), least) < 1e-9);
  const auto plain = solve_ridge(triangle_of(of.gram()), of.sums(), 7.0);
  const auto scaled = solve_ridge(triangle_of(of.gram() * 9.0), of.sums() * 3.0, 63.0); // (3 H, 9 gamma) gives W / 3
  CHECK(relative(scaled * 3.0, plain) < 1e-12);
}

TEST_CASE("a matrix that is not positive definite is solved all the same", "[ridge]") {
  const auto gram = at::tensor({1.0, 3.0, 3.0, 1.0}, at::kDouble).view({2, 2}); // eigenvalues 4 and -2
  const auto w = solve_ridge(triangle_of(gram), at::tensor({2.0, 0.0}, at::kDouble).view({1, 2}), 0.5);
  // [1.5 3; 3 1.5] w = [2 0]: w = [1.5 * 2, -3 * 2] / (2.25 - 9)
  CHECK_THAT(w[0][0].item<double>(), Catch::Matchers::WithinAbs(3.0 / -6.75, 1e-14));
  CHECK_THAT(w[0][1].item<double>(), Catch::Matchers::WithinAbs(-6.0 / -6.75, 1e-14));
}

TEST_CASE("the mean diagonal is the trace over the width", "[ridge]") {
  const auto matrix = at::diag(at::arange(1, 301, at::kDouble)) + 0.25;
  CHECK_THAT(mean_diagonal(triangle_of(matrix)), Catch::Matchers::WithinRel(150.75, 1e-14));
}
