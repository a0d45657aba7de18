// Selection of retained images, and their weights.
#include "runtime/base/rng.hpp"
#include "strategies/osi_fl/retained_rows.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <numeric>
using namespace mneme;
using positions = std::vector<std::int64_t>;

TEST_CASE("the largest scores of each label are selected, the first of equal ones") {
  const std::vector<double> scores{1.0, 5.0, 3.0, 5.0, 2.0, 7.0, 5.0, 0.5};
  const std::vector<std::int64_t> labels{4, 4, 4, 4, 1, 1, 4, 9};
  CHECK((retained_rows(scores, labels, 2) == positions{5, 4, 1, 3, 7}));
  CHECK((retained_rows(scores, labels, 3) == positions{5, 4, 1, 3, 6, 7}));
  CHECK((retained_rows(scores, labels, 1) == positions{5, 1, 7}));
  CHECK((retained_rows(scores, labels, 100) == positions{5, 4, 1, 3, 6, 2, 0, 7}));
  CHECK(retained_rows(scores, labels, 0).empty());
  CHECK(retained_rows({}, {}, 3).empty());
}

TEST_CASE("no other subset of a label's rows has a larger sum of scores") {
  for (std::uint64_t trial = 0; trial < 40; ++trial) {
    rng_stream draw({.seed = trial, .purpose = first_method_purpose});
    const auto n = static_cast<std::int64_t>(1 + draw.below(8)), p = static_cast<std::int64_t>(draw.below(9));
    std::vector<double> scores;
    for (std::int64_t i = 0; i < n; ++i)
      scores.push_back(static_cast<double>(draw.below(5))); // many ties
    const auto chosen = retained_rows(scores, std::vector<std::int64_t>(static_cast<std::size_t>(n), 3), p);
    REQUIRE(std::ssize(chosen) == std::min(n, p));
    double sum = 0.0, best = 0.0;
    for (const auto row : chosen)
      sum += scores[static_cast<std::size_t>(row)];
    for (unsigned subset = 0; subset < 1U << n; ++subset) {
      double other = 0.0;
      for (std::int64_t i = 0; i < n; ++i)
        other += (subset >> i & 1U) != 0 ? scores[static_cast<std::size_t>(i)] : 0.0;
      if (__builtin_popcount(subset) == std::min(n, p))
        best = std::max(best, other);
    }
    CHECK(sum == best);
  }
}

TEST_CASE("weighted mean losses are the sum of the tasks' means up to a factor (eq. 16)") {
  const std::vector<double> losses{1.0, 2.0, 6.0, 10.0, 20.0, 4.0}; // three new rows, two of one task, one of another
  const auto weights = weights_by_task(3, std::vector<std::int64_t>{2, 1});
  REQUIRE(weights.size() == 6);
  CHECK(std::vector<float>(weights.begin(), weights.begin() + 3) == std::vector<float>(3, 6.0F / 9.0F));
  CHECK(std::vector<float>(weights.begin() + 3, weights.end()) == std::vector<float>{1.0F, 1.0F, 2.0F});
  double mean = 0.0;
  for (std::size_t i = 0; i < 6; ++i)
    mean += static_cast<double>(weights[i]) * losses[i] / 6.0;
  CHECK_THAT(mean, Catch::Matchers::WithinRel((3.0 + 15.0 + 4.0) / 3.0, 1e-6));
  CHECK_THAT(std::accumulate(weights.begin(), weights.end(), 0.0), Catch::Matchers::WithinRel(6.0, 1e-6));
  // A task without retained images has no weight; new rows alone have weight 1 each.
  CHECK(weights_by_task(3, std::vector<std::int64_t>{2, 0, 1}) == weights);
  CHECK(weights_by_task(4, {}) == std::vector<float>(4, 1.0F));
}
