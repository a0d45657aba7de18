#include "runtime/federation/batch_planner.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

constexpr fuse_key usual_key{.kind = 0, .options = 7};

/// Job of one assignment that is parked at shard 0.
struct waiting_job {
  std::uint64_t assignment = 0;
  std::int64_t rows = 1, bytes = 10;
  int due_second = 0;
};

std::vector<parked_job> parked(const std::vector<waiting_job>& jobs, std::int64_t width = 64) {
  std::vector<parked_job> made;
  for (const auto& job : jobs)
    made.push_back(
        {.job =
             {.id = {{job.assignment}, 0, 0}, .key = usual_key, .rows = job.rows, .bytes = job.bytes, .width = width},
         .due = virtual_time{std::chrono::seconds(job.due_second)},
         .shard = {}});
  return made;
}

using ids = std::vector<std::uint64_t>;

std::vector<ids> ids_of(const std::vector<composition>& batches) {
  std::vector<ids> shown;
  for (const auto& batch : batches) {
    shown.emplace_back();
    for (const auto& id : batch)
      shown.back().push_back(id.assignment.value);
  }
  return shown;
}

/// Batches of jobs that are all parked at one shard.
std::vector<ids> batches_of(const std::vector<parked_job>& jobs, const batch_rules& rules,
                            std::int64_t shards_alike = 1) {
  const auto planned = plan_batches(jobs, rules, shards_alike);
  REQUIRE((planned.size() == 1));
  return ids_of(planned.front().batches);
}

constexpr batch_rules width_alone{.balance_over_workers = false, .width_is_fixed = true};

} // namespace

TEST_CASE("batches are cut at the width, with jobs of similar length, in id order") {
  const auto jobs = parked({{1, 10}, {2, 50}, {3, 10}, {4, 40}, {5, 20}}, 2);
  CHECK((batches_of(jobs, width_alone) == std::vector<ids>{{2, 4}, {1, 5}, {3}}));
}

TEST_CASE("batches distribute the rows over the workers") {
  CHECK((batches_of(parked({{1, 30}, {2, 10}, {3, 10}, {4, 10}}), {.workers = 2}) == std::vector<ids>{{1}, {2, 3, 4}}));
}

TEST_CASE("large outcomes are computed in due order, small ones in id order") {
  const auto first_batch = [](std::int64_t bytes) {
    return batches_of(parked({{1, 10, bytes, 3}, {2, 10, bytes, 1}, {3, 10, bytes, 4}, {4, 10, bytes, 2}}, 2),
                      width_alone)
        .front();
  };
  CHECK((first_batch(4 << 20) == ids{1, 2})); // 16 MiB in total
  CHECK((first_batch((4 << 20) + 1) == ids{2, 4}));
}

TEST_CASE("batches whose outcomes are used early follow due times and become smaller at the end") {
  std::vector<waiting_job> jobs;
  for (int i = 1; i <= 8; ++i)
    jobs.push_back({.assignment = static_cast<std::uint64_t>(i), .rows = 10, .due_second = 9 - i});
  // A worker's share of 80 rows gives two batches: at most 40 rows, then half of the remaining 40, then half of 20; the
  // minimum is a quarter of 40.
  CHECK(batches_of(parked(jobs), {.workers = 1, .batches_per_worker = 2}) ==
        std::vector<ids>{{5, 6, 7, 8}, {3, 4}, {2}, {1}});
}

TEST_CASE("a remainder below half of the smallest batch joins another batch") {
  std::vector<waiting_job> jobs;
  for (int i = 1; i <= 9; ++i)
    jobs.push_back({.assignment = static_cast<std::uint64_t>(i), .rows = i == 9 ? 1 : 10});
  // 81 rows in at least two batches: at most 41 rows, then 20, then 11; the remaining row is too few for a batch.
  CHECK(batches_of(parked(jobs), {.workers = 1, .batches_per_worker = 2}) ==
        std::vector<ids>{{1, 2, 3, 4}, {5, 6}, {7}, {8, 9}});
}

TEST_CASE("a shard cuts batches as if every shard had as many rows") {
  std::vector<waiting_job> jobs;
  for (std::uint64_t i = 1; i <= 8; ++i)
    jobs.push_back({.assignment = i, .rows = 10});
  const auto count_of = [&](std::int64_t shards_alike, const batch_rules& rules) {
    return batches_of(parked(jobs), rules, shards_alike).size();
  };
  CHECK((count_of(2, {.workers = 2}) == 1)); // other shards have as many: one worker each
  CHECK((count_of(1, {.workers = 2}) == 2));
  CHECK((count_of(1, {.workers = 2, .balance_over_workers = false}) == 1));
  CHECK((count_of(2, {.workers = 2, .batches_per_worker = 4}) == 5)); // of 2, 2, 2, 1 and 1 jobs
}

TEST_CASE("batches of a group have similar widths, without a last batch of a few jobs") {
  CHECK((even_width(128, 64) == 64));
  CHECK((even_width(132, 64) == 66)); // not 64 + 64 + 4
  CHECK((even_width(143, 64) == 72));
  CHECK((even_width(144, 64) == 48));
  CHECK((even_width(79, 64) == 79));
  CHECK((even_width(80, 64) == 40));
  CHECK((even_width(3, 64) == 3));
  CHECK((even_width(5, 2) == 2));
  CHECK((even_width(7, 1) == 1));
}

TEST_CASE("batches never cross shards or keys") {
  auto jobs = parked({{0}, {1}, {2}, {3}});
  jobs[1].shard = {1};
  jobs[3].job.key.options = 8;
  for (const bool reversed : {false, true}) {
    if (reversed)
      std::reverse(jobs.begin(), jobs.end());
    const auto planned = plan_batches(jobs, {});
    REQUIRE((planned.size() == 2));
    CHECK((planned[0].shard == shard_id{0}));
    CHECK((ids_of(planned[0].batches) == std::vector<ids>{{0, 2}, {3}}));
    CHECK((planned[1].shard == shard_id{1}));
    CHECK((ids_of(planned[1].batches) == std::vector<ids>{{1}}));
  }
}

TEST_CASE("batches do not depend on the order of reports") {
  std::vector<waiting_job> jobs;
  for (std::uint64_t i = 0; i < 40; ++i)
    jobs.push_back(
        {.assignment = i, .rows = static_cast<std::int64_t>(1 + i % 5), .due_second = static_cast<int>(i % 3)});
  auto reported = parked(jobs, 7);
  for (auto& job : reported)
    job.shard = {static_cast<std::uint32_t>(job.job.id.assignment.value % 2)};
  for (const batch_rules& rules : {batch_rules{.workers = 3}, batch_rules{.workers = 2, .batches_per_worker = 3}}) {
    const auto expected = plan_batches(reported, rules);
    for (int turn = 0; turn < 10; ++turn) {
      std::rotate(reported.begin(), reported.begin() + 11, reported.end());
      std::swap(reported[3], reported[17]);
      const auto planned = plan_batches(reported, rules);
      REQUIRE((planned.size() == expected.size()));
      for (std::size_t s = 0; s < planned.size(); ++s)
        CHECK((planned[s].batches == expected[s].batches));
    }
  }
}
