#include "strategies/fil_ver/embedding_pool.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using Catch::Matchers::WithinAbs;

namespace {

constexpr std::int64_t labels = 3;

embedding_pool::limits limits_of(pool_kind kind, std::int64_t rows_max) {
  return {.kind = kind,
          .rows_max = rows_max,
          .labels = {{0, labels}, {0, labels}, {0, labels}},
          .stream = {.seed = 4, .purpose = first_method_purpose}};
}

/// Rows numbered from `first` on, as features of one number; row i has label i mod 3.
embedding_rows numbered(std::int64_t first, std::int64_t count) {
  const auto numbers = at::arange(first, first + count);
  return {.features = numbers.to(at::kFloat).view({count, 1}), .labels = numbers.remainder(labels).to(at::kInt)};
}

} // namespace

TEST_CASE("a reservoir holds its size of every task, evenly over labels, for any number of rows") {
  embedding_pool pool(limits_of(pool_kind::reservoir, 20));
  for (std::int64_t i = 0; i < 30; ++i)
    pool.add({0}, numbered(i * 10, 10));
  pool.add({2}, numbered(0, 9));
  CHECK(pool.size({0}) == 20);
  CHECK(pool.size({0}, 0) == 7);
  CHECK(pool.size({0}, 1) == 7);
  CHECK(pool.size({0}, 2) == 6);
  CHECK(pool.size({1}) == 0);
  CHECK(pool.size({2}) == 9);
  CHECK(pool.size() == 29);
}

TEST_CASE("a label that arrives first does not displace the others") {
  embedding_pool pool(limits_of(pool_kind::reservoir, 20));
  pool.add({0}, {.features = at::zeros({50, 1}), .labels = at::zeros({50}, at::kInt)});
  CHECK(pool.size({0}) == 7);
  pool.add({0}, {.features = at::ones({50, 1}), .labels = at::full({50}, 2, at::kInt)});
  CHECK(pool.size({0}, 0) == 7);
  CHECK(pool.size({0}, 1) == 0);
  CHECK(pool.size({0}, 2) == 6);
}

TEST_CASE("an unlimited pool keeps all rows in order of arrival") {
  embedding_pool pool(limits_of(pool_kind::everything, 5));
  pool.add({0}, numbered(0, 40));
  pool.add({0}, numbered(40, 40));
  CHECK(pool.size({0}) == 80);
}

TEST_CASE("every row that ever arrived is equally likely to be in a reservoir") {
  std::vector<int> kept(30);
  constexpr int runs = 3000;
  for (int run = 0; run < runs; ++run) {
    auto limits = limits_of(pool_kind::reservoir, 9);
    limits.stream.seed = static_cast<std::uint64_t>(run);
    embedding_pool pool(limits);
    for (std::int64_t i = 0; i < 3; ++i)
      pool.add({0}, numbered(10 * i, 10));
    const auto rows = pool.drawn(1, 1, pool_balance::uniform, {.seed = static_cast<std::uint64_t>(run)});
    ++kept[static_cast<std::size_t>(rows.features.item<float>())];
  }
  for (const auto count : kept)
    CHECK_THAT(count / static_cast<double>(runs), WithinAbs(1.0 / 30, 0.012));
}

TEST_CASE("two rows competing for one place are kept equally often") {
  int first_kept = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    auto limits = limits_of(pool_kind::reservoir, 1);
    limits.labels = {{0, 1}};
    limits.stream.seed = seed;
    embedding_pool pool(limits);
    for (const float value : {1.0F, 2.0F})
      pool.add({0}, {.features = at::full({1, 1}, value), .labels = at::zeros({1}, at::kInt)});
    first_kept += pool.drawn(1, 1, pool_balance::uniform, {}).features.item<float>() == 1.0F;
  }
  CHECK(std::abs(first_kept - 200) < 50); // 5 standard deviations
}

TEST_CASE("balanced batches have as many rows of every task, uniform ones of every row") {
  embedding_pool pool(limits_of(pool_kind::everything, 1));
  pool.add({0}, numbered(0, 90));
  pool.add({1}, numbered(1000, 9));
  pool.add({2}, numbered(2000, 1));
  const auto share_of_first = [&](pool_balance balance) {
    const auto rows = pool.drawn(10, 64, balance, {.seed = 1});
    REQUIRE(rows.size() == 640);
    return (rows.features < 1000).sum().item<std::int64_t>();
  };
  CHECK(share_of_first(pool_balance::task_balanced) == 214); // 640 over 3 tasks
  CHECK_THAT(static_cast<double>(share_of_first(pool_balance::uniform)), WithinAbs(576.0, 30.0));
  const auto rows = pool.drawn(10, 64, pool_balance::task_balanced, {.seed = 1});
  for (std::int64_t batch = 0; batch < 10; ++batch) {
    const auto in_batch = rows.features.narrow(0, batch * 64, 64);
    for (const auto low : {0, 1000, 2000}) {
      const auto count = ((in_batch >= low) & (in_batch < low + 1000)).sum().item<std::int64_t>();
      CHECK((count == 21 || count == 22));
    }
  }
}

TEST_CASE("batches follow their key, and rows keep their labels") {
  embedding_pool pool(limits_of(pool_kind::reservoir, 12));
  pool.add({0}, numbered(0, 100));
  const auto rows = pool.drawn(2, 5, pool_balance::task_balanced, {.seed = 1});
  CHECK(at::equal(rows.features, pool.drawn(2, 5, pool_balance::task_balanced, {.seed = 1}).features));
  CHECK_FALSE(at::equal(rows.features, pool.drawn(2, 5, pool_balance::task_balanced, {.seed = 2}).features));
  CHECK(at::equal(rows.features.view({-1}).to(at::kInt).remainder(labels), rows.labels));
}

TEST_CASE("a task's labels need not begin at 0") {
  auto limits = limits_of(pool_kind::reservoir, 6);
  limits.labels = {{0, 2}, {2, 5}};
  embedding_pool pool(limits);
  auto rows = numbered(0, 30);
  rows.labels = rows.labels + 2;
  pool.add({1}, rows);
  CHECK(pool.size({1}) == 6);
  CHECK(pool.size({1}, 4) == 2);
}
