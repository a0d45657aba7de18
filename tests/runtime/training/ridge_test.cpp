#include "runtime/base/triangle.hpp"
#include "runtime/training/ridge.hpp"
#include "tests/support/reference_algebra.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Features h [90, M = 40] and targets y [90, C = 3], one-hot labels or other values.
struct regression {
  matrix h = drawn_matrix(90, 40, 1), y = drawn_matrix(90, 3, 2);
  [[nodiscard]] matrix gram() const { return gram_of(h); }
  [[nodiscard]] matrix sums() const { return y.transpose() * h; } // [C, M]
};

at::Tensor solved(const matrix& gram, const matrix& sums, double ridge) {
  return solve_ridge(triangle_of(tensor_of(gram)), tensor_of(sums), ridge);
}

} // namespace

TEST_CASE("a ridge solution satisfies the normal equations and equals the SVD solution", "[ridge]") {
  const regression given;
  const auto w = solved(given.gram(), given.sums(), 2.5); // [C, M]
  const matrix x = matrix_of(w).transpose();
  CHECK((given.gram() * x + 2.5 * x - given.sums().transpose()).norm() / given.sums().norm() < 1e-12);

  const Eigen::JacobiSVD<Eigen::MatrixXd> parts(given.h, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const Eigen::ArrayXd s = parts.singularValues();
  const matrix expected =
      parts.matrixV() * (s / (s * s + 2.5)).matrix().asDiagonal() * parts.matrixU().transpose() * given.y;
  CHECK(relative_difference(w, expected.transpose()) < 1e-12);
}

TEST_CASE("a large ridge gives class sums divided by it, a small one least squares, and scales cancel", "[ridge]") {
  const regression given;
  CHECK(relative_difference(solved(given.gram(), given.sums(), 1e14), given.sums() / 1e14) < 1e-9);
  const matrix least = given.h.colPivHouseholderQr().solve(given.y);
  CHECK(relative_difference(solved(given.gram(), given.sums(), 1e-10), least.transpose()) < 1e-9);
  const auto plain = solved(given.gram(), given.sums(), 7.0);
  const auto scaled = solved(given.gram() * 9.0, given.sums() * 3.0, 63.0); // (3 H, 9 gamma) gives W / 3
  CHECK(relative_difference(scaled * 3.0, matrix_of(plain)) < 1e-12);
}

TEST_CASE("a matrix that is not positive definite is also solved", "[ridge]") {
  matrix gram(2, 2), sums(1, 2);
  gram << 1.0, 3.0, 3.0, 1.0; // eigenvalues 4 and -2
  sums << 2.0, 0.0;
  const auto w = matrix_of(solved(gram, sums, 0.5));
  // [1.5 3; 3 1.5] w = [2 0]: w = [1.5 * 2, -3 * 2] / (2.25 - 9)
  CHECK_THAT(w(0, 0), Catch::Matchers::WithinAbs(3.0 / -6.75, 1e-14));
  CHECK_THAT(w(0, 1), Catch::Matchers::WithinAbs(-6.0 / -6.75, 1e-14));

  const matrix half = drawn_matrix(60, 60, 3), indefinite = half + half.transpose(), right = drawn_matrix(4, 60, 4);
  const matrix shifted = indefinite + 0.5 * matrix::Identity(60, 60);
  const matrix expected = shifted.fullPivLu().solve(right.transpose());
  CHECK(relative_difference(solved(indefinite, right, 0.5), expected.transpose()) < 1e-10);
}

TEST_CASE("the mean diagonal is the trace divided by the width", "[ridge]") {
  const matrix values = drawn_matrix(300, 300, 5), symmetric = values + values.transpose();
  CHECK_THAT(mean_diagonal(triangle_of(tensor_of(symmetric))),
             Catch::Matchers::WithinAbs(symmetric.trace() / 300, 1e-12));
}
