#include "actors/compute/batch_lines.hpp"
#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <thread>
using namespace mneme;

namespace {

std::vector<ready_batch> batches(std::uint64_t first, std::uint64_t count) {
  std::vector<ready_batch> all;
  for (auto id = first; id < first + count; ++id)
    all.push_back({.owner = {}, .ids = {{{id}, 0, 0}}, .what = {}});
  return all;
}

/// The assignment of a batch's only job; 0: there was no batch.
std::uint64_t number(const std::optional<ready_batch>& taken) {
  return taken ? taken->ids.front().assignment.value : 0;
}

} // namespace

TEST_CASE("a line gives its own batches in order, and to others the first of the longest line") {
  batch_lines lines(3);
  CHECK(number(lines.own({0})) == 0);
  CHECK(number(lines.of_others()) == 0);
  lines.put({0}, batches(10, 2));
  lines.put({2}, batches(20, 2));
  lines.put({2}, batches(30, 1));
  CHECK(number(lines.own({1})) == 0);
  CHECK(number(lines.of_others()) == 20);
  CHECK(number(lines.own({0})) == 10);
  CHECK(number(lines.own({2})) == 21);
  CHECK(number(lines.own({2})) == 30);
  CHECK(number(lines.own({2})) == 0);
  CHECK(number(lines.of_others()) == 11);
  CHECK(number(lines.of_others()) == 0);
}

TEST_CASE("threads that share lines run every batch once") {
  constexpr std::uint64_t count = 4000;
  batch_lines lines(2);
  std::vector<std::atomic<int>> times(count);
  const auto run = [&](shard_id mine) {
    for (std::uint64_t part = 0; part < count / 2; part += 100) {
      lines.put(mine, batches(mine.value * count / 2 + part, 100));
      for (auto next = lines.own(mine); next; next = lines.own(mine))
        ++times.at(number(next));
      if (const auto other = lines.of_others())
        ++times.at(number(other));
    }
  };
  { const std::jthread one(run, shard_id{0}), two(run, shard_id{1}); }
  CHECK(std::all_of(times.begin(), times.end(), [](const auto& n) { return n == 1; }));
}
