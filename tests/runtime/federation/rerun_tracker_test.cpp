#include "runtime/federation/rerun_tracker.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

std::vector<parked_job> jobs_of(std::uint64_t assignment, std::uint32_t stage, std::uint32_t count = 1) {
  std::vector<parked_job> jobs;
  for (std::uint32_t step = 0; step < count; ++step)
    jobs.push_back({.job = {.id = {{assignment}, stage, step}}});
  return jobs;
}

std::vector<job_id> ids(const std::vector<parked_job>& jobs) {
  std::vector<job_id> ids;
  for (const auto& parked : jobs)
    ids.push_back(parked.job.id);
  return ids;
}

} // namespace

TEST_CASE("a round is rerun stage by stage up to the jobs for which it waited before") {
  rerun_tracker again;
  CHECK(again.is_empty());
  again.add({7}, 2); // parked with the jobs of its second stage
  CHECK(again.is_lagging({7}));
  CHECK(again.stages_of({7}) == 0);
  again.waits_for(jobs_of(7, 0, 2));
  CHECK(again.is_lagging({7}));
  CHECK((ids(again.take_lagging()) == std::vector<job_id>{{{7}, 0, 0}, {{7}, 0, 1}}));
  CHECK(again.take_lagging().empty()); // they are running
  again.waits_for(jobs_of(7, 1));
  CHECK_FALSE(again.is_lagging({7}));
  CHECK(again.stages_of({7}) == 2);
  CHECK(again.take_lagging().empty());
  CHECK((ids(again.jobs_of({7})) == std::vector<job_id>{{{7}, 1, 0}})); // now these are parked again
}

TEST_CASE("a result is recomputed through all stages, and a round that had requested nothing never lags") {
  rerun_tracker again;
  again.add({1}, rerun_tracker::to_result);
  again.add({2}, 0);
  CHECK_FALSE(again.is_lagging({2}));
  for (std::uint32_t stage = 0; stage < 3; ++stage) {
    again.waits_for(jobs_of(1, stage));
    again.waits_for(jobs_of(2, stage));
    CHECK((ids(again.take_lagging()) == std::vector<job_id>{{{1}, stage, 0}}));
  }
  again.ended({1});
  CHECK(again.has_ended({1}));
  CHECK_FALSE(again.is_lagging({1}));
  CHECK(again.jobs_of({1}).empty());
  CHECK_FALSE(again.has_ended({2}));
}

TEST_CASE("rerun rounds that have caught up wait for lagging ones, in id order") {
  rerun_tracker again;
  again.add({5}, 1);
  again.add({3}, 3);
  again.add({4}, 2);
  for (const std::uint64_t id : {5, 3, 4})
    again.waits_for(jobs_of(id, 0));
  CHECK((ids(again.take_lagging()) == std::vector<job_id>{{{3}, 0, 0}, {{4}, 0, 0}}));
  CHECK((again.ids() == std::vector<assignment_id>{{3}, {4}, {5}}));
  CHECK_FALSE(again.is_lagging({9})); // does not run again
  CHECK_FALSE(again.has({9}));
  again.clear();
  CHECK(again.is_empty());
}
