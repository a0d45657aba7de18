// Aggregation rules on the uploads v_u[i] = ((37 u + 11 i^2 + 5 u i) mod 23) / 8 - 1 in float32. References:
// flwr 1.42.0, flwr.server.strategy.aggregate, aggregate_median(), aggregate_trimmed_avg(results, 0.3),
// aggregate_krum(results, num_malicious=2, to_keep=0 and 3), each result with one example.
#include "runtime/method/aggregation_rules.hpp"
#include <catch2/catch_test_macros.hpp>
#include <limits>
using namespace mneme;

namespace {

std::vector<std::vector<float>> made_uploads(int count) {
  std::vector<std::vector<float>> uploads;
  for (int u = 0; u < count; ++u) {
    auto& upload = uploads.emplace_back();
    for (int i = 0; i < 6; ++i)
      upload.push_back(static_cast<float>((37 * u + 11 * i * i + 5 * u * i) % 23) / 8.0f - 1.0f);
  }
  return uploads;
}

std::vector<float> aggregated(const std::vector<std::vector<float>>& uploads, const aggregation_section& options) {
  const std::vector<upload_values> views(uploads.begin(), uploads.end());
  return aggregate_uploads(views, options);
}

} // namespace

TEST_CASE("the median of odd and even numbers of uploads equals Flower's") {
  const aggregation_section rule{.rule = aggregation_rule::median};
  CHECK(aggregated(made_uploads(7), rule) == std::vector<float>{0.25f, 0.375f, -0.625f, 0.625f, 0.5f, 0.25f});
  CHECK(aggregated(made_uploads(6), rule) == std::vector<float>{-0.0625f, 0.5625f, -0.6875f, 0.3125f, 0.0f, 0.5625f});
}

TEST_CASE("the trimmed mean equals Flower's up to its float32 sums") {
  const auto mean = aggregated(made_uploads(7), {.rule = aggregation_rule::trimmed_mean, .trim = 0.3});
  // hand-worked: the three middle values of seven, such as (0.125 + 0.25 + 0.25) / 3
  CHECK(mean == std::vector<float>{0.625f / 3, 1.375f / 3, -0.625f, 1.375f / 3, 0.5f / 3, 0.375f});
  CHECK(aggregated({{1.0f}, {9.0f}, {3.0f}}, {.rule = aggregation_rule::trimmed_mean, .trim = 0.0}) ==
        std::vector<float>{13.0f / 3});
}

TEST_CASE("Krum and Multi-Krum choose the uploads that Flower chooses") {
  CHECK(aggregated(made_uploads(7), {.rule = aggregation_rule::krum, .byzantine = 2}) ==
        std::vector<float>{-0.375f, -0.625f, -1.0f, 1.375f, 0.75f, 0.0f});
  CHECK(aggregated(made_uploads(7), {.rule = aggregation_rule::multi_krum, .byzantine = 2, .selected = 3}) ==
        std::vector<float>{-0.125f, 0.125f, -2.125f / 3, 3.625f / 3, 0.125f, -0.125f});
}

TEST_CASE("Krum scores by hand: the middle of three points, and the first of equal scores") {
  const std::vector<std::vector<float>> uploads{{0.0f}, {1.0f}, {10.0f}, {1.5f}};
  const std::vector<upload_values> views(uploads.begin(), uploads.end());
  // one closest other upload (4 - 1 - 2): 1, 0.25, 72.25, 0.25
  CHECK(krum_choice(views, 1, 4) == std::vector<std::size_t>{1, 3, 0, 2});
  CHECK(krum_choice(std::span(views).first(1), 0, 1) == std::vector<std::size_t>{0});
}

TEST_CASE("Krum counts U - byzantine - 2 closest uploads") {
  const std::vector<std::vector<float>> uploads{{0.0f}, {1.0f}, {2.0f}, {10.0f}, {10.5f}};
  const std::vector<upload_values> views(uploads.begin(), uploads.end());
  CHECK(krum_choice(views, 1, 1) == std::vector<std::size_t>{1}); // two closest: 1 + 1
  CHECK(krum_choice(views, 2, 1) == std::vector<std::size_t>{3}); // one closest: 0.25
}

TEST_CASE("an upload that is not a number is never chosen by Krum and is the largest value for a median") {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> uploads{{nan}, {1.0f}, {2.0f}};
  CHECK(aggregated(uploads, {.rule = aggregation_rule::krum}) == std::vector<float>{1.0f});
  CHECK(aggregated(uploads, {.rule = aggregation_rule::median}) == std::vector<float>{2.0f});
}
