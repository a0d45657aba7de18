// Clients and links are those of the table in federation_test.cpp.
#include "runtime/federation/wave_scheduler.hpp"
#include "tests/runtime/federation/three_clients.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Three active clients whose downloads have ended.
std::unique_ptr<federation_parts> three_at_work(const toy_federation& toy) {
  auto parts = std::make_unique<federation_parts>(toy.settings);
  CHECK(parts->dispatch.dispatch_cohort());
  return parts;
}

/// One job of duration `compute_duration` for each of the first `count` assignments, in their first stage.
wave_report waiting(std::uint64_t count, virtual_duration compute_duration) {
  wave_report report;
  for (std::uint64_t id = 0; id < count; ++id)
    report.issued.push_back(
        {.id = {{id}, 0, 0}, .rows = 4, .bytes = 10, .width = 64, .compute_duration = compute_duration});
  return report;
}

std::size_t jobs_of(const release& released) {
  std::size_t jobs = 0;
  for (const auto& batch : released.batches)
    jobs += batch.size();
  return jobs;
}

toy_federation unknown_sizes() {
  auto toy = toy_of(three_clients());
  toy.settings.upload_size_known = false;
  return toy;
}

} // namespace

TEST_CASE("a cohort with known upload sizes starts at once; with other work present, shards wait for a release") {
  for (const bool only_cohort : {true, false}) {
    const auto parts = three_at_work(toy_of(three_clients()));
    CHECK(parts->ahead.needs_outcome(parts->clock.next()));
    parts->ahead.begin_wave({0}, only_cohort);
    const auto commands = parts->commands();
    const auto* const wave = std::get_if<start_rounds>(&commands.back());
    REQUIRE(wave);
    CHECK(wave->assignments.size() == 3);
    CHECK(wave->at_once == only_cohort);
    CHECK(parts->ahead.is_out());
    CHECK(parts->in_flight.at({0}).phase == assignment_phase::computing);
  }
}

TEST_CASE("a wave ends with the last report of its last shard, and jobs due by then run in the next wave") {
  const auto parts = three_at_work(unknown_sizes());
  parts->ahead.begin_wave({0}, true);
  (void)parts->commands();
  auto first = waiting(2, 1s);
  first.last = false;
  CHECK(parts->ahead.on_wave_report(first) == wave_progress::further);
  wave_report last;
  last.issued.push_back({.id = {{2}, 0, 0}, .rows = 4, .bytes = 10, .width = 64, .compute_duration = 4s});
  CHECK(parts->ahead.on_wave_report(last) == wave_progress::over);
  CHECK_FALSE(parts->ahead.is_out());
  CHECK(parts->in_flight.at({2}).horizon == virtual_time(4600ms));
  parts->ahead.begin_wave({0}, true);
  const auto commands = parts->commands();
  CHECK(jobs_of(std::get<release>(commands.back())) == 3);
}

TEST_CASE("a failure is reported at its virtual time; if a whole wave fails, the lowest job is reported") {
  const auto parts = three_at_work(unknown_sizes());
  parts->ahead.begin_wave({0}, true);
  wave_report report;
  report.failed.push_back({.last_job = {{1}, 0, 0}, .client = {1}, .reason = "NaN"});
  CHECK(parts->ahead.on_wave_report(report) == wave_progress::over);
  CHECK_FALSE(parts->ahead.failure());
  CHECK(parts->ahead.failure_of({0}) == nullptr);
  REQUIRE(parts->ahead.failure_of({1}));
  CHECK(parts->ahead.failure_of({1})->reason == "NaN");

  const auto interrupted = three_at_work(unknown_sizes());
  interrupted->ahead.begin_wave({0}, true);
  wave_report end;
  end.failed.push_back({.last_job = {{1}, 0, 0}, .client = {1}, .reason = interrupted_text});
  CHECK(interrupted->ahead.on_wave_report(end) == wave_progress::over);
  REQUIRE(interrupted->ahead.failure());
  CHECK(interrupted->ahead.failure()->reason == interrupted_text);
}

TEST_CASE("rerun rounds advance to their previous stage, and their jobs are parked as before") {
  const auto parts = three_at_work(unknown_sizes());
  parts->ahead.begin_wave({0}, true);
  auto report = waiting(3, 1s);
  CHECK(parts->ahead.on_wave_report(report) == wave_progress::over);
  (void)parts->commands();
  auto& owner = parts->in_flight.at({1});
  parts->in_flight.forget_jobs(owner); // an interruption of the run does the same
  owner.stages.push_back(1s);          // in its second stage
  owner.horizon += 1s;
  CHECK_FALSE(parts->ahead.is_rerunning());
  parts->ahead.repeat(owner, 2);
  CHECK(parts->ahead.is_rerunning());
  parts->dispatch.start(owner);
  parts->ahead.start_queued();
  const auto jobs_before = parts->out.report().jobs;

  wave_report first;
  first.issued.push_back({.id = {{1}, 0, 0}, .rows = 4, .bytes = 10, .width = 64, .compute_duration = 1s});
  CHECK(parts->ahead.on_wave_report(first) == wave_progress::over);
  (void)parts->commands();
  CHECK_FALSE(parts->ahead.is_rerun_complete());
  auto commands = parts->commands();
  CHECK(jobs_of(std::get<release>(commands.back())) == 1); // jobs of other clients stay parked
  CHECK(owner.held_bytes == 10);
  wave_report second;
  second.issued.push_back({.id = {{1}, 1, 0}, .rows = 4, .bytes = 10, .width = 64, .compute_duration = 1s});
  CHECK(parts->ahead.on_wave_report(second) == wave_progress::over);
  CHECK(parts->ahead.is_rerun_complete());
  CHECK(owner.phase == assignment_phase::computing);
  CHECK(owner.horizon == virtual_time(2600ms)); // it has not changed
  CHECK(parts->out.report().jobs == jobs_before);
  parts->ahead.begin_wave({1}, true);
  commands = parts->commands();
  CHECK(jobs_of(std::get<release>(commands.back())) == 3);
}

TEST_CASE("a rerun with another duration ends the run with an error") {
  const auto parts = three_at_work(unknown_sizes());
  auto& owner = parts->in_flight.at({1});
  owner.stages.assign(1, 1s);
  parts->ahead.repeat(owner, 1);
  parts->ahead.start_queued();
  wave_report report;
  report.issued.push_back({.id = {{1}, 0, 0}, .rows = 4, .bytes = 10, .width = 64, .compute_duration = 2s});
  CHECK(parts->ahead.on_wave_report(report) == wave_progress::over);
  REQUIRE(parts->ahead.failure());
  CHECK_THAT(parts->ahead.failure()->reason, ContainsSubstring("it belongs to another run"));
}

TEST_CASE("results that exceed the memory are recomputed when needed, with one warning") {
  auto toy = unknown_sizes();
  toy.settings.results_bytes_max = 20;
  const auto parts = three_at_work(toy);
  parts->ahead.begin_wave({0}, true);
  wave_report report;
  for (std::uint64_t id = 0; id < 3; ++id)
    report.finished.push_back({.id = {id}, .result = {.upload = as_tensors(id + 1)}, .bytes = {10}});
  CHECK(parts->ahead.on_wave_report(report) == wave_progress::over);
  (void)parts->commands();
  parts->ahead.make_room();
  CHECK(parts->in_flight.at({2}).phase == assignment_phase::evicted); // at 64 bits per second it arrives last
  CHECK(std::holds_alternative<run_warning>(parts->commands().back()));
  CHECK((parts->ahead.to_recompute({2}) == std::vector<assignment_id>{{2}}));
}
