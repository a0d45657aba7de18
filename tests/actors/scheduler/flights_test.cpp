#include "actors/scheduler/flights.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

constexpr fuse_key one_kind{.kind = 0, .options = 7};

issued_job job_of(std::uint64_t assignment, std::int64_t rows, std::int64_t bytes = 10, std::int64_t width = 64) {
  return {.id = {{assignment}, 0, 0}, .key = one_kind, .rows = rows, .bytes = bytes, .width = width};
}

parked_job parked(const issued_job& job, virtual_time due = {}) { return {.job = job, .due = due, .shard = {}}; }

virtual_time second(int seconds) { return virtual_time{std::chrono::seconds(seconds)}; }

flight flight_of(std::uint64_t assignment) {
  flight one;
  one.id = {assignment};
  return one;
}

std::vector<std::uint64_t> ids(const composition& batch) {
  std::vector<std::uint64_t> all;
  for (const auto& id : batch)
    all.push_back(id.assignment.value);
  return all;
}

bool always(const flight&, virtual_time) { return true; }

} // namespace

TEST_CASE("batches are cut at the width, jobs of like length together, ids ascending") {
  const auto batches = cut({parked(job_of(1, 10)), parked(job_of(2, 50)), parked(job_of(3, 10)), parked(job_of(4, 40)),
                            parked(job_of(5, 20))},
                           {.width = 2});
  REQUIRE(batches.size() == 3);
  CHECK(ids(batches[0]) == std::vector<std::uint64_t>{2, 4});
  CHECK(ids(batches[1]) == std::vector<std::uint64_t>{1, 5});
  CHECK(ids(batches[2]) == std::vector<std::uint64_t>{3});
}

TEST_CASE("batches share the rows among the workers") {
  const auto batches = cut({parked(job_of(1, 30)), parked(job_of(2, 10)), parked(job_of(3, 10)), parked(job_of(4, 10))},
                           {.width = 64, .rows_max = 30});
  REQUIRE(batches.size() == 2);
  CHECK(ids(batches[0]) == std::vector<std::uint64_t>{1});
  CHECK(ids(batches[1]) == std::vector<std::uint64_t>{2, 3, 4});
}

TEST_CASE("of large outcomes those that are due first are computed first, of small ones those of the first ids") {
  const auto first_batch = [](std::int64_t bytes) {
    return ids(cut({parked(job_of(1, 10, bytes), second(3)), parked(job_of(2, 10, bytes), second(1)),
                    parked(job_of(3, 10, bytes), second(4)), parked(job_of(4, 10, bytes), second(2))},
                   {.width = 2})
                   .front());
  };
  CHECK(first_batch(4 << 20) == std::vector<std::uint64_t>{1, 2}); // 16 MiB in all
  CHECK(first_batch((4 << 20) + 1) == std::vector<std::uint64_t>{2, 4});
}

TEST_CASE("batches whose outcomes are used meanwhile follow the times they are due, and become smaller at the end") {
  std::vector<parked_job> jobs;
  for (int i = 1; i <= 8; ++i)
    jobs.push_back(parked(job_of(static_cast<std::uint64_t>(i), 10), second(9 - i)));
  // Of 80 rows at most 40, then half of the 40 that are left, then half of 20; a quarter of 40 is the least.
  const auto batches = cut(jobs, {.width = 64, .rows_max = 40, .tapered = true});
  REQUIRE(batches.size() == 4);
  CHECK(ids(batches[0]) == std::vector<std::uint64_t>{5, 6, 7, 8});
  CHECK(ids(batches[1]) == std::vector<std::uint64_t>{3, 4});
  CHECK(ids(batches[2]) == std::vector<std::uint64_t>{2});
  CHECK(ids(batches[3]) == std::vector<std::uint64_t>{1});
}

TEST_CASE("a shard cuts its jobs by the rows of all shards") {
  std::vector<parked_job> jobs;
  for (std::uint64_t i = 1; i <= 8; ++i)
    jobs.push_back(parked(job_of(i, 10)));
  const auto batches_of = [&](std::int64_t rows, const release_rules& rules) { return cut(jobs, rows, rules).size(); };
  CHECK(batches_of(160, {.workers = 2}) == 1); // as many wait elsewhere: a worker each
  CHECK(batches_of(80, {.workers = 2}) == 2);
  CHECK(batches_of(80, {.workers = 2, .balance_over_workers = false}) == 1);
  CHECK(batches_of(160, {.workers = 2, .batches_per_worker = 4}) == 5); // of 2, 2, 2, 1 and 1 jobs
}

TEST_CASE("batches of a group are of like width: a rest of a few jobs makes no batch of its own") {
  CHECK(even_width(128, 64) == 64);
  CHECK(even_width(132, 64) == 66); // not 64 + 64 + 4
  CHECK(even_width(143, 64) == 72);
  CHECK(even_width(144, 64) == 48);
  CHECK(even_width(79, 64) == 79);
  CHECK(even_width(80, 64) == 40);
  CHECK(even_width(3, 64) == 3);
  CHECK(even_width(5, 2) == 2);
  CHECK(even_width(7, 1) == 1);
}

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
    const auto first = book.release({4}, {.ahead_bytes_max = 25, .workers = 1}, always);
    REQUIRE(first.size() == 1);
    CHECK(ids(first.at({}).front()) == std::vector<std::uint64_t>{3, 4}); // due at 7 and 6
    book.erase({4});
    book.erase({3});
    const auto second = book.release({2}, {.ahead_bytes_max = 25, .workers = 1}, always);
    CHECK(ids(second.at({}).front()) == std::vector<std::uint64_t>{1, 2});
  }
}

TEST_CASE("the job on top of the queue is released although the budget is too small for it") {
  flight_book book;
  book.add(flight_of(0));
  book.add(flight_of(1));
  book.park({{.job = job_of(0, 1, 100), .due = second(1), .shard = {}},
             {.job = job_of(1, 1, 100), .due = second(1), .shard = {}}});
  const auto batches = book.release({1}, {.ahead_bytes_max = 1, .workers = 1}, always);
  REQUIRE(batches.at({}).size() == 1);
  CHECK(ids(batches.at({}).front()) == std::vector<std::uint64_t>{1});
}

TEST_CASE("batches never cross shards or keys") {
  flight_book book;
  for (std::uint64_t i = 0; i < 4; ++i)
    book.add(flight_of(i));
  auto other = job_of(3, 1);
  other.key.options = 8;
  book.park({{.job = job_of(0, 1), .due = second(1), .shard = {0}},
             {.job = job_of(1, 1), .due = second(1), .shard = {1}},
             {.job = job_of(2, 1), .due = second(1), .shard = {0}},
             {.job = other, .due = second(1), .shard = {0}}});
  const auto batches = book.release({0}, {.ahead_bytes_max = 1000, .workers = 1}, always);
  REQUIRE(batches.at({0}).size() == 2);
  CHECK(ids(batches.at({0})[0]) == std::vector<std::uint64_t>{0, 2});
  CHECK(ids(batches.at({0})[1]) == std::vector<std::uint64_t>{3});
  CHECK(ids(batches.at({1})[0]) == std::vector<std::uint64_t>{1});
}

TEST_CASE("what is not wanted any more stays parked") {
  flight_book book;
  book.add(flight_of(0));
  book.add(flight_of(1));
  book.park(
      {{.job = job_of(0, 1), .due = second(1), .shard = {}}, {.job = job_of(1, 1), .due = second(9), .shard = {}}});
  const auto batches = book.release({0}, {.ahead_bytes_max = 1000, .workers = 1},
                                    [](const flight&, virtual_time due) { return due <= second(5); });
  CHECK(ids(batches.at({}).front()) == std::vector<std::uint64_t>{0});
}
