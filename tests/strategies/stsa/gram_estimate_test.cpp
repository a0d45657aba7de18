#include "runtime/base/triangle.hpp"
#include "strategies/stsa/gram_estimate.hpp"
#include "tests/support/reference_algebra.hpp"
#include <ATen/Parallel.h>
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <numeric>
using namespace mneme;
using namespace mneme::test;

// Properties of the estimate of one class's Gram matrix (STSA-E, eqs. 10 and 11 of the paper).

namespace {

const bool one_thread = (at::set_num_threads(1), true); // small products, very many of them

using sizes = std::vector<std::int64_t>;

/// Rows of a class dealt to clients of these sizes in the given order: sums of the clients that hold some.
class_sums sums_of(const matrix& rows, const sizes& clients, const std::vector<std::int64_t>& order) {
  std::vector<at::Tensor> sums;
  std::vector<double> counts;
  std::size_t next = 0;
  for (const auto size : clients) {
    if (size == 0)
      continue;
    matrix sum = matrix::Zero(1, rows.cols());
    for (std::int64_t i = 0; i < size; ++i)
      sum += rows.row(order[next++]);
    sums.push_back(tensor_of(sum)[0]);
    counts.push_back(static_cast<double>(size));
  }
  return {.sums = at::stack(sums), .counts = at::tensor(counts, at::kDouble), .clients = std::ssize(clients)};
}
std::vector<std::int64_t> in_order(const matrix& rows) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows.rows()));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

matrix estimated(const class_sums& held, client_count kappa = client_count::nonempty, bool clamp_b = false) {
  const auto width = held.sums.size(1);
  auto gram = at::zeros({triangle_size(width)}, at::kDouble);
  add_estimated_gram(gram, held, kappa, clamp_b);
  return matrix_of(square(gram, width));
}

/// sum c c^T / n
matrix weighted_squares(const class_sums& held) {
  const matrix sums = matrix_of(held.sums), counts = matrix_of(held.counts);
  return sums.transpose() * counts.row(0).cwiseInverse().asDiagonal() * sums;
}

/// Published form: G = a sum c c^T
/// n - b Cg Cg^T.
matrix published(const class_sums& held, double kappa) {
  const double n = matrix_of(held.counts).sum();
  const double a = (n - 1) / (kappa - 1), b = (n - kappa) / (n * (kappa - 1));
  const matrix total = matrix_of(held.sums).colwise().sum();
  return a * weighted_squares(held) - b * gram_of(total);
}

double relative(const matrix& a, const matrix& b) { return (a - b).norm() / b.norm(); }

/// Mean of the estimate over all ways to deal the rows.
matrix mean_over_assignments(const matrix& rows, const sizes& clients, client_count kappa) {
  auto order = in_order(rows);
  matrix sum = matrix::Zero(rows.cols(), rows.cols());
  double ways = 0.0;
  do {
    sum += estimated(sums_of(rows, clients, order), kappa);
    ++ways;
  } while (std::next_permutation(order.begin(), order.end()));
  return sum / ways;
}

/// Column c has deviation c + 1 around 0.5.
matrix normal_rows(std::int64_t n, std::int64_t width, std::uint64_t seed) {
  matrix rows = drawn_matrix(n, width, seed);
  for (std::int64_t c = 0; c < width; ++c)
    rows.col(c) = (rows.col(c).array() * static_cast<double>(c + 1) + 0.5).matrix();
  return rows;
}

} // namespace

TEST_CASE("three samples at two clients give the matrices worked out by hand", "[stsa]") {
  matrix rows(3, 2), by_2_2(2, 2), by_3_0(2, 2), by_1_0(2, 2);
  rows << 1, 0, 3, 0, 2, 2;
  by_2_2 << 12, 4, 4, 20.0 / 3;
  by_3_0 << 15, 2, 2, 8.0 / 3;
  by_1_0 << 15, 6, 6, 8.0 / 3;
  const sizes clients{2, 1};
  const auto alone_2_2 = estimated(sums_of(rows, clients, {0, 1, 2}));
  const auto alone_3_0 = estimated(sums_of(rows, clients, {0, 2, 1}));
  const auto alone_1_0 = estimated(sums_of(rows, clients, {1, 2, 0}));
  CHECK(relative(alone_2_2, by_2_2) < 1e-14);
  CHECK(relative(alone_3_0, by_3_0) < 1e-14);
  CHECK(relative(alone_1_0, by_1_0) < 1e-14);
  CHECK(relative((alone_2_2 + alone_3_0 + alone_1_0) / 3, gram_of(rows)) < 1e-14);
}

TEST_CASE("the mean of the unbiased estimate over all assignments is exactly the Gram matrix", "[stsa]") {
  const auto rows = normal_rows(6, 3, 1);
  for (const auto& clients : {sizes{3, 3}, sizes{1, 5}, sizes{2, 0, 1, 3}, sizes{1, 1, 1, 3}})
    CHECK(relative(mean_over_assignments(rows, clients, client_count::nonempty), gram_of(rows)) < 1e-13);
}

TEST_CASE("counting all clients shrinks the scatter by (K' - 1) / (K - 1)", "[stsa]") {
  const auto rows = normal_rows(6, 3, 2);
  const matrix mean = rows.colwise().mean(), scatter = gram_of(rows.rowwise() - mean.row(0));
  const matrix expected = 6.0 * gram_of(mean) + scatter * (2.0 / 4.0); // K' = 3 of K = 5
  CHECK(relative(mean_over_assignments(rows, {2, 0, 1, 3, 0}, client_count::total), expected) < 1e-13);
}

TEST_CASE("the stable form equals the published one, is positive semi-definite and of rank K' at most", "[stsa]") {
  const auto rows = normal_rows(40, 6, 3);
  const auto held = sums_of(rows, {1, 0, 13, 4, 0, 0, 7, 15}, in_order(rows));
  const auto exact = estimated(held);
  CHECK(relative(exact, published(held, 5.0)) < 1e-13);
  CHECK(relative(estimated(held, client_count::total), published(held, 8.0)) < 1e-13);
  const Eigen::VectorXd values = Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(exact).eigenvalues();
  CHECK(values.minCoeff() > -1e-9 * exact.norm());
  CHECK((values.array() > 1e-9 * values.maxCoeff()).count() == 5);
}

TEST_CASE("single samples give the Gram matrix, one holder its mean, and no holder zero", "[stsa]") {
  const auto rows = normal_rows(5, 4, 4);
  CHECK(relative(estimated(sums_of(rows, {1, 1, 1, 1, 1}, in_order(rows))), gram_of(rows)) < 1e-13);
  const matrix mean = rows.colwise().mean();
  const auto single = sums_of(rows, {5}, in_order(rows)), held_by_one = sums_of(rows, {0, 5, 0}, in_order(rows));
  CHECK(relative(estimated(single), 5.0 * gram_of(mean)) < 1e-13);
  CHECK(relative(estimated(held_by_one), 5.0 * gram_of(mean)) < 1e-13);
  CHECK(relative(estimated(held_by_one, client_count::total), 5.0 * gram_of(mean)) < 1e-13);
  const auto one_row = normal_rows(1, 4, 5);
  CHECK(relative(estimated(sums_of(one_row, {0, 1}, {0})), gram_of(one_row)) < 1e-13);
  auto gram = at::zeros({triangle_size(4)}, at::kDouble);
  add_estimated_gram(gram, {at::zeros({0, 4}, at::kDouble), at::zeros({0}, at::kDouble), 3}, client_count::total, true);
  CHECK(gram.abs().sum().item<double>() == 0.0);
}

TEST_CASE("fewer samples than clients stay unbiased, and the official code's clamp changes them", "[stsa]") {
  const auto rows = normal_rows(4, 3, 6);
  CHECK(relative(mean_over_assignments(rows, {2, 2, 0, 0, 0, 0}, client_count::nonempty), gram_of(rows)) < 1e-13);
  const auto held = sums_of(rows, {2, 2, 0, 0, 0, 0}, in_order(rows)); // N = 4 < K = 6
  const matrix clamped = weighted_squares(held) * (3.0 / 5.0);         // b = 0
  CHECK(relative(estimated(held, client_count::total, true), clamped) < 1e-13);
  CHECK(relative(estimated(held, client_count::nonempty, true), published(held, 2.0)) < 1e-13); // N > K': no clamp
  const auto one_row = normal_rows(1, 3, 7);
  CHECK(estimated(sums_of(one_row, {1, 0}, {0}), client_count::total, true).norm() == 0.0); // a = 0
}

TEST_CASE("the estimate's variance follows its formula", "[stsa]") {
  // E |G' - G|^2 = (N - 1)(N - K') / (K' - 1) (tr S^2 + (tr S)^2) for normal features of covariance S.
  const std::int64_t n = 20;
  const double trace = 1.0 + 4.0 + 9.0, squares = 1.0 + 16.0 + 81.0; // deviations 1, 2, 3
  double before = 1e300;
  for (const auto& clients : {sizes{12, 8}, sizes{5, 5, 4, 6}, sizes{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}}) {
    double sum = 0.0;
    REQUIRE(one_thread);
    const std::uint64_t draws = 20'000, at_once = 100; // draws are adjacent columns with separate blocks
    for (std::uint64_t i = 0; i < draws; i += at_once) {
      matrix rows(n, 3 * at_once);
      for (std::uint64_t k = 0; k < at_once; ++k)
        rows.middleCols(static_cast<std::int64_t>(3 * k), 3) = normal_rows(n, 3, 100 + i + k);
      const matrix errors = estimated(sums_of(rows, clients, in_order(rows))) - gram_of(rows);
      for (std::uint64_t k = 0; k < at_once; ++k)
        sum += errors.block(static_cast<std::int64_t>(3 * k), static_cast<std::int64_t>(3 * k), 3, 3).squaredNorm();
    }
    const auto holders = static_cast<double>(clients.size());
    const auto law = 19.0 * (20.0 - holders) / (holders - 1.0) * (squares + trace * trace);
    CHECK_THAT(sum / static_cast<double>(draws), Catch::Matchers::WithinRel(law, 0.03));
    CHECK(sum < before);
    before = sum;
  }
}

TEST_CASE("parts without rows contribute to class sums but not to the estimate", "[stsa]") {
  held_sums held;
  // Two parts, two classes, two features. Noise on its counts has removed class 1 from the first part.
  const auto sums = at::tensor({1.0, 2.0, 10.0, 20.0, 3.0, 4.0, 30.0, 40.0}, at::kDouble).view({2, 2, 2});
  held.add(sums, at::tensor({2.0, 0.0, 1.0, 5.0}, at::kDouble).view({2, 2}));
  held.add(sums, at::zeros({2, 2}, at::kDouble));
  auto into = at::zeros({3, 2}, at::kDouble);
  held.add_to(into, 1);
  CHECK(into.equal(at::tensor({0.0, 0.0, 8.0, 12.0, 80.0, 120.0}, at::kDouble).view({3, 2})));
  const auto asked = held.take(at::zeros({3}, at::kDouble), 4, {});
  CHECK(asked->at("holders").equal(at::tensor({std::int64_t{2}, std::int64_t{1}})));
  CHECK(asked->at("counts").equal(at::tensor({2.0, 1.0, 5.0}, at::kDouble)));
  CHECK(asked->at("sums").equal(at::tensor({1.0, 2.0, 3.0, 4.0, 30.0, 40.0}, at::kDouble).view({3, 2})));
}
