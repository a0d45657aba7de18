#include "runtime/data/public_rows.hpp"
#include "tests/support/small_data.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
using namespace mneme;
using namespace mneme::test;

namespace {

scenario with_share(double share, std::int64_t tasks) {
  scenario from;
  from.tasks.count = tasks;
  from.partition.public_share = share;
  return from;
}

std::map<std::int32_t, std::int64_t> by_label(const task_stream& stream, const std::vector<std::int64_t>& rows) {
  std::map<std::int32_t, std::int64_t> counts;
  for (const auto row : rows)
    ++counts[stream.train->label(row)];
  return counts;
}

} // namespace

TEST_CASE("a share of the rows of each task and class is public and belongs to no client") {
  const auto whole = make_task_stream(with_share(0.0, 2), hand_made_data(4, 200, {1, 1, 1})).value();
  const auto stream = make_task_stream(with_share(0.15, 2), hand_made_data(4, 200, {1, 1, 1})).value();
  for (std::size_t t = 0; t < 2; ++t) {
    const auto& task = stream.tasks[t];
    CHECK(task.public_rows.size() == 16); // 0.15 * 50 rows is 7.5: 8 of each class
    for (const auto& [label, count] : by_label(stream, task.public_rows))
      CHECK(count == 8);
    auto both = task.train;
    both.insert(both.end(), task.public_rows.begin(), task.public_rows.end());
    std::sort(both.begin(), both.end());
    CHECK(both == whole.tasks[t].train);
    CHECK(std::is_sorted(task.train.begin(), task.train.end()));
    CHECK(std::is_sorted(task.public_rows.begin(), task.public_rows.end()));
    CHECK(task.test == whole.tasks[t].test);
    CHECK(whole.tasks[t].public_rows.empty());
  }
}

TEST_CASE("the selection of public rows depends on the seed") {
  const auto open = [](std::int64_t seed) {
    auto from = with_share(0.3, 1);
    from.seed = seed;
    return make_task_stream(from, hand_made_data(2, 60, {1, 1, 1})).value().tasks[0].public_rows;
  };
  CHECK(open(1) == open(1));
  CHECK(open(1) != open(2));
}

TEST_CASE("a row that several tasks show is public in all of them or in none") {
  auto from = with_share(0.25, 3);
  from.tasks.kind = task_kind::domain_incremental;
  from.tasks.transform = task_transform::permute;
  const auto stream = make_task_stream(from, hand_made_data(2, 40, {1, 2, 2})).value();
  REQUIRE(stream.tasks[0].public_rows.size() == 10);
  for (std::size_t t = 1; t < 3; ++t)
    for (std::size_t i = 0; i < 10; ++i)
      CHECK(stream.tasks[t].public_rows[i] == stream.tasks[0].public_rows[i] + 40 * static_cast<std::int64_t>(t));
}

TEST_CASE("at least one row of a class is not public, for any share") {
  const auto stream = make_task_stream(with_share(0.9, 1), hand_made_data(2, 4, {1, 1, 1})).value();
  CHECK(by_label(stream, stream.tasks[0].train) == std::map<std::int32_t, std::int64_t>{{0, 1}, {1, 1}});
}
