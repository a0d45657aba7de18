#include "runtime/federation/in_flight_table.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

constexpr fuse_key one_kind{.kind = 0, .options = 7};

issued_job job_of(std::uint64_t assignment, std::int64_t rows, std::int64_t bytes = 10) {
  return {.id = {{assignment}, 0, 0}, .key = one_kind, .rows = rows, .bytes = bytes, .width = 64};
}

virtual_time second(int seconds) { return virtual_time{std::chrono::seconds(seconds)}; }

assignment_in_flight assignment_of(std::uint64_t assignment) {
  assignment_in_flight made;
  made.id = {assignment};
  return made;
}

/// Assignments of the jobs, ascending.
std::vector<std::uint64_t> ids(const std::vector<parked_job>& taken) {
  std::vector<std::uint64_t> numbers;
  for (const auto& parked : taken)
    numbers.push_back(parked.job.id.assignment.value);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

bool always(const assignment_in_flight&, virtual_time) { return true; }

} // namespace

TEST_CASE("a release takes jobs in due order until the budget is full, in whatever order they were parked") {
  for (const bool reversed : {false, true}) {
    in_flight_table table;
    std::vector<parked_job> jobs;
    for (std::uint64_t i = 0; i < 5; ++i) {
      table.add(assignment_of(i));
      jobs.push_back({.job = job_of(i, 1), .due = second(10 - static_cast<int>(i)), .shard = {}});
    }
    if (reversed)
      std::reverse(jobs.begin(), jobs.end());
    table.park(jobs);
    const auto first = table.take_runnable({4}, 25, always);
    CHECK(ids(first) == std::vector<std::uint64_t>{3, 4}); // due at 7 and 6
    table.erase({4});
    table.erase({3});
    const auto second = table.take_runnable({2}, 25, always);
    CHECK(ids(second) == std::vector<std::uint64_t>{1, 2});
  }
}

TEST_CASE("the first due job is taken even if the budget is too small for it") {
  in_flight_table table;
  table.add(assignment_of(0));
  table.add(assignment_of(1));
  table.park({{.job = job_of(0, 1, 100), .due = second(1), .shard = {}},
              {.job = job_of(1, 1, 100), .due = second(1), .shard = {}}});
  CHECK(ids(table.take_runnable({1}, 1, always)) == std::vector<std::uint64_t>{1});
}

TEST_CASE("jobs that are no longer needed stay parked") {
  in_flight_table table;
  table.add(assignment_of(0));
  table.add(assignment_of(1));
  table.park(
      {{.job = job_of(0, 1), .due = second(1), .shard = {}}, {.job = job_of(1, 1), .due = second(9), .shard = {}}});
  const auto taken =
      table.take_runnable({0}, 1000, [](const assignment_in_flight&, virtual_time due) { return due <= second(5); });
  CHECK(ids(taken) == std::vector<std::uint64_t>{0});
}
