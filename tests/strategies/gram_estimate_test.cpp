#include "runtime/base/rng.hpp"
#include "runtime/base/triangle.hpp"
#include "strategies/shared/gram_estimate.hpp"
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <numeric>
using namespace mneme;

// What the sheet of STSA derives for the estimate of one class's Gram matrix (sections 3.1 to 3.5).

namespace {

const bool one_thread = (at::set_num_threads(1), true); // small products, very many

using sizes = std::vector<std::int64_t>;

at::Tensor matrix(std::initializer_list<double> values, std::int64_t columns) {
  return at::tensor(at::ArrayRef<double>(values.begin(), values.size()), at::kDouble).view({-1, columns});
}

/// Rows of a class dealt to clients of these sizes, in the order given: what the clients that hold some send.
class_sums sums_of(const at::Tensor& rows, const sizes& clients, const std::vector<std::int64_t>& order) {
  std::vector<at::Tensor> sums;
  std::vector<double> counts;
  const auto dealt = rows.index_select(0, at::tensor(order, at::kLong));
  std::int64_t next = 0;
  for (const auto size : clients) {
    if (size == 0)
      continue;
    sums.push_back(dealt.narrow(0, next, size).sum(0));
    next += size;
    counts.push_back(static_cast<double>(size));
  }
  return {.sums = at::stack(sums), .counts = at::tensor(counts, at::kDouble), .clients = std::ssize(clients)};
}
std::vector<std::int64_t> in_order(const at::Tensor& rows) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows.size(0)));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

at::Tensor estimated(const class_sums& of, client_count kappa = client_count::nonempty, bool clamp_b = false) {
  const auto width = of.sums.size(1);
  auto gram = at::zeros({triangle_size(width)}, at::kDouble);
  add_estimated_gram(gram, of, kappa, clamp_b);
  return square(gram, width);
}

/// The published form: G = a sum c c^T / n - b Cg Cg^T.
at::Tensor published(const class_sums& of, double kappa) {
  const auto n = of.counts.sum().item<double>();
  const auto a = (n - 1) / (kappa - 1), b = (n - kappa) / (n * (kappa - 1));
  const auto all = of.sums.sum(0, true);
  return a * of.sums.t().mm(of.sums / of.counts.unsqueeze(1)) - b * all.t().mm(all);
}

double relative(const at::Tensor& a, const at::Tensor& b) { return ((a - b).norm() / b.norm()).item<double>(); }

/// The mean of the estimate over every way to deal the rows.
at::Tensor mean_over_assignments(const at::Tensor& rows, const sizes& clients, client_count kappa) {
  auto order = in_order(rows);
  auto sum = at::zeros({rows.size(1), rows.size(1)}, at::kDouble);
  double ways = 0.0;
  do {
    sum += estimated(sums_of(rows, clients, order), kappa);
    ++ways;
  } while (std::next_permutation(order.begin(), order.end()));
  return sum / ways;
}

at::Tensor normal_rows(std::int64_t n, std::int64_t width, std::uint64_t seed) {
  auto rows = at::empty({n, width}, at::kDouble);
  rng_stream draw({.seed = seed, .what = first_method_purpose});
  for (std::int64_t i = 0; i < rows.numel(); ++i)
    rows.mutable_data_ptr<double>()[i] = draw.normal() * static_cast<double>(1 + i % width) + 0.5;
  return rows;
}

} // namespace

TEST_CASE("three samples at two clients give the matrices worked out by hand", "[stsa]") {
  const auto rows = matrix({1, 0, 3, 0, 2, 2}, 2);
  const sizes clients{2, 1};
  const auto alone_2_2 = estimated(sums_of(rows, clients, {0, 1, 2}));
  const auto alone_3_0 = estimated(sums_of(rows, clients, {0, 2, 1}));
  const auto alone_1_0 = estimated(sums_of(rows, clients, {1, 2, 0}));
  CHECK(at::allclose(alone_2_2, matrix({12, 4, 4, 20.0 / 3}, 2), 1e-14, 1e-14));
  CHECK(at::allclose(alone_3_0, matrix({15, 2, 2, 8.0 / 3}, 2), 1e-14, 1e-14));
  CHECK(at::allclose(alone_1_0, matrix({15, 6, 6, 8.0 / 3}, 2), 1e-14, 1e-14));
  CHECK(at::allclose((alone_2_2 + alone_3_0 + alone_1_0) / 3, rows.t().mm(rows), 1e-14, 1e-14));
}

TEST_CASE("over all assignments the unbiased estimate is the Gram matrix exactly", "[stsa]") {
  const auto rows = normal_rows(6, 3, 1);
  for (const auto& clients : {sizes{3, 3}, sizes{1, 5}, sizes{2, 0, 1, 3}, sizes{1, 1, 1, 3}})
    CHECK(relative(mean_over_assignments(rows, clients, client_count::nonempty), rows.t().mm(rows)) < 1e-13);
}

TEST_CASE("with all clients counted the scatter shrinks by (K' - 1) / (K - 1)", "[stsa]") {
  const auto rows = normal_rows(6, 3, 2);
  const auto mean = rows.mean(0, true);
  const auto scatter = (rows - mean).t().mm(rows - mean);
  const auto expected = 6.0 * mean.t().mm(mean) + scatter * (2.0 / 4.0); // K' = 3 of K = 5
  CHECK(relative(mean_over_assignments(rows, {2, 0, 1, 3, 0}, client_count::total), expected) < 1e-13);
}

TEST_CASE("the stable form equals the published one, is positive semi-definite and of rank K' at most", "[stsa]") {
  const auto rows = normal_rows(40, 6, 3);
  const auto of = sums_of(rows, {1, 0, 13, 4, 0, 0, 7, 15}, in_order(rows));
  const auto exact = estimated(of);
  CHECK(relative(exact, published(of, 5.0)) < 1e-13);
  CHECK(relative(estimated(of, client_count::total), published(of, 8.0)) < 1e-13);
  const auto values = at::linalg_eigvalsh(exact, "L");
  CHECK(values.min().item<double>() > -1e-9 * exact.norm().item<double>());
  CHECK((values > 1e-9 * values.max()).sum().item<std::int64_t>() == 5);
}

TEST_CASE("one sample each is the Gram matrix itself; one holder is its mean; nobody is nothing", "[stsa]") {
  const auto rows = normal_rows(5, 4, 4);
  CHECK(relative(estimated(sums_of(rows, {1, 1, 1, 1, 1}, in_order(rows))), rows.t().mm(rows)) < 1e-13);
  const auto mean = rows.mean(0, true);
  const auto single = sums_of(rows, {5}, in_order(rows)), held_by_one = sums_of(rows, {0, 5, 0}, in_order(rows));
  CHECK(relative(estimated(single), 5.0 * mean.t().mm(mean)) < 1e-13);
  CHECK(relative(estimated(held_by_one), 5.0 * mean.t().mm(mean)) < 1e-13);
  CHECK(relative(estimated(held_by_one, client_count::total), 5.0 * mean.t().mm(mean)) < 1e-13);
  const auto one_row = normal_rows(1, 4, 5);
  CHECK(relative(estimated(sums_of(one_row, {0, 1}, {0})), one_row.t().mm(one_row)) < 1e-13);
  auto gram = at::zeros({triangle_size(4)}, at::kDouble);
  add_estimated_gram(gram, {at::zeros({0, 4}, at::kDouble), at::zeros({0}, at::kDouble), 3}, client_count::total, true);
  CHECK(gram.abs().sum().item<double>() == 0.0);
}

TEST_CASE("fewer samples than clients stay unbiased, and the official code's clamp changes them", "[stsa]") {
  const auto rows = normal_rows(4, 3, 6);
  CHECK(relative(mean_over_assignments(rows, {2, 2, 0, 0, 0, 0}, client_count::nonempty), rows.t().mm(rows)) < 1e-13);
  const auto of = sums_of(rows, {2, 2, 0, 0, 0, 0}, in_order(rows));                   // N = 4 < K = 6
  const auto clamped = of.sums.t().mm(of.sums / of.counts.unsqueeze(1)) * (3.0 / 5.0); // b = 0
  CHECK(relative(estimated(of, client_count::total, true), clamped) < 1e-13);
  CHECK(relative(estimated(of, client_count::nonempty, true), published(of, 2.0)) < 1e-13); // N > K': no clamp
  const auto one_row = normal_rows(1, 3, 7);
  CHECK(estimated(sums_of(one_row, {1, 0}, {0}), client_count::total, true).abs().sum().item<double>() == 0.0); // a = 0
}

TEST_CASE("the estimate's variance follows its law", "[stsa]") {
  // E |G' - G|^2 = (N - 1)(N - K') / (K' - 1) (tr S^2 + (tr S)^2) for normal features of covariance S.
  const std::int64_t n = 20;
  const double trace = 1.0 + 4.0 + 9.0, squares = 1.0 + 16.0 + 81.0; // deviations 1, 2, 3
  double before = 1e300;
  for (const auto& clients : {sizes{12, 8}, sizes{5, 5, 4, 6}, sizes{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}}) {
    double sum = 0.0;
    REQUIRE(one_thread);
    const std::uint64_t draws = 20'000;
    for (std::uint64_t i = 0; i < draws; ++i) {
      const auto rows = normal_rows(n, 3, 100 + i);
      const auto error = estimated(sums_of(rows, clients, in_order(rows))) - rows.t().mm(rows);
      sum += error.square().sum().item<double>();
    }
    const auto holders = static_cast<double>(clients.size());
    const auto law = 19.0 * (20.0 - holders) / (holders - 1.0) * (squares + trace * trace);
    CHECK_THAT(sum / static_cast<double>(draws), Catch::Matchers::WithinRel(law, 0.03));
    CHECK(sum < before);
    before = sum;
  }
}
