#include "actors/scheduler/flights.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

constexpr fuse_key one_kind{.kind = 0, .options = 7};

issued_job job_of(std::uint64_t assignment, std::int64_t rows, std::int64_t bytes = 10) {
  return {.id = {{assignment}, 0, 0}, .key = one_kind, .rows = rows, .bytes = bytes, .width = 64};
}

virtual_time second(int seconds) { return virtual_time{std::chrono::seconds(seconds)}; }

flight flight_of(std::uint64_t assignment) {
  flight one;
  one.id = {assignment};
  return one;
}

/// Of released jobs, ascending.
std::vector<std::uint64_t> ids(const std::vector<parked_job>& released) {
  std::vector<std::uint64_t> all;
  for (const auto& parked : released)
    all.push_back(parked.job.id.assignment.value);
  std::sort(all.begin(), all.end());
  return all;
}

bool always(const flight&, virtual_time) { return true; }

} // namespace

TEST_CASE("a release takes jobs in due order until the budget is full, whatever order they came in") {
  for (const bool reversed : {false, true}) {
    flight_book book;
    std::vector<parked_job> jobs;
    for (std::uint64_t i = 0; i < 5; ++i) {
      book.add(flight_of(i));
      jobs.push_back({.job = job_of(i, 1), .due = second(10 - static_cast<int>(i)), .shard = {}});
    }
    if (reversed)
      std::reverse(jobs.begin(), jobs.end());
    book.park(jobs);
    const auto first = book.release({4}, 25, always);
    CHECK(ids(first) == std::vector<std::uint64_t>{3, 4}); // due at 7 and 6
    book.erase({4});
    book.erase({3});
    const auto second = book.release({2}, 25, always);
    CHECK(ids(second) == std::vector<std::uint64_t>{1, 2});
  }
}

TEST_CASE("the job on top of the queue is released although the budget is too small for it") {
  flight_book book;
  book.add(flight_of(0));
  book.add(flight_of(1));
  book.park({{.job = job_of(0, 1, 100), .due = second(1), .shard = {}},
             {.job = job_of(1, 1, 100), .due = second(1), .shard = {}}});
  CHECK(ids(book.release({1}, 1, always)) == std::vector<std::uint64_t>{1});
}

TEST_CASE("what is not wanted any more stays parked") {
  flight_book book;
  book.add(flight_of(0));
  book.add(flight_of(1));
  book.park(
      {{.job = job_of(0, 1), .due = second(1), .shard = {}}, {.job = job_of(1, 1), .due = second(9), .shard = {}}});
  const auto released = book.release({0}, 1000, [](const flight&, virtual_time due) { return due <= second(5); });
  CHECK(ids(released) == std::vector<std::uint64_t>{0});
}
