// L-BFGS compared with the dense BFGS formula in float64.
#include "strategies/lga/gradient_inversion.hpp"
#include "tests/support/reference_algebra.hpp"
#include <catch2/catch_test_macros.hpp>
#include <vector>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t size = 5;

/// f(x) = 1/2 x^T A x + 1/4 sum x^4, whose Hessian varies.
struct bowl {
  matrix a;
  bowl() {
    const matrix drawn = drawn_matrix(size, size, 4);
    a = drawn.transpose() * drawn / 5.0 + matrix::Identity(size, size);
  }
  [[nodiscard]] double value(const matrix& x) const {
    return 0.5 * (x.transpose() * a * x)(0, 0) + 0.25 * x.array().pow(4).sum();
  }
  [[nodiscard]] matrix gradient(const matrix& x) const { return a * x + matrix(x.array().cube()); }
};

/// Direction -H g, where H starts at gamma I with one update for each pair of steps s and changes y:
/// H <- (I - s y^T
/// y^T s) H (I - y s^T
/// y^T s) + s s^T
/// y^T s (Nocedal and Wright 2006, eqs. 7.16 and 7.20).
matrix dense_direction(const std::vector<matrix>& s, const std::vector<matrix>& y, const matrix& g) {
  const matrix identity = matrix::Identity(size, size);
  matrix h = identity * ((y.back().transpose() * s.back())(0, 0) / y.back().squaredNorm());
  for (std::size_t i = 0; i < s.size(); ++i) {
    const double r = 1.0 / (y[i].transpose() * s[i])(0, 0);
    const matrix left = identity - r * s[i] * y[i].transpose();
    h = left * h * left.transpose() + r * s[i] * s[i].transpose();
  }
  return -h * g;
}

} // namespace

TEST_CASE("the steps of L-BFGS equal those of dense BFGS from the first gradient on") {
  const bowl f;
  const double rate = 0.4;
  matrix x = drawn_matrix(size, 1, 9);
  lbfgs walk(tensor_of(x).flatten().to(at::kFloat), rate);
  std::vector<matrix> moves, changes;
  matrix g = f.gradient(x), move;
  for (int step = 0; step < 8; ++step) {
    const matrix at_walk = matrix_of(walk.x()).transpose();
    REQUIRE(walk.advance_step(f.value(at_walk), tensor_of(f.gradient(at_walk)).flatten().to(at::kFloat)));
    if (step == 0)
      move = -g * (rate * std::min(1.0, 1.0 / g.array().abs().sum()));
    else
      move = rate * dense_direction(moves, changes, g);
    x += move;
    const matrix next = f.gradient(x);
    moves.push_back(move);
    changes.push_back(next - g);
    g = next;
    CAPTURE(step);
    const matrix reached = matrix_of(walk.x()).transpose();
    CHECK((reached - x).norm() < 1e-5 * x.norm() + 1e-6);
  }
  CHECK(f.value(x) < 0.5 * f.value(drawn_matrix(size, 1, 9)));
}
