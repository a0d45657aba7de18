// Clients and links are those of the table in federation_test.cpp.
#include "runtime/federation/recovery.hpp"
#include "tests/runtime/federation/three_clients.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;
using namespace std::chrono_literals;

namespace {

toy_federation unknown_sizes(std::int64_t stored_results_bytes_max) {
  auto toy = toy_of(three_clients());
  toy.settings.upload_size_known = false;
  toy.settings.stored_results_bytes_max = stored_results_bytes_max;
  return toy;
}

/// Run in which client 0 has its result, client 1 has a parked first job, and client 2 has not started.
archive saved_of(const toy_federation& toy) {
  federation_parts parts(toy.settings);
  parts.dispatch.plan_task({});
  CHECK(parts.dispatch.dispatch_cohort());
  auto& third = parts.in_flight.at({2});
  parts.ahead.start_queued();
  wave_report report;
  report.issued.push_back({.id = {{1}, 0, 0}, .rows = 4, .bytes = 10, .width = 64, .compute_duration = 2s});
  report.finished.push_back({.id = {0}, .result = {.upload = as_tensors(5), .rows = 4}, .bytes = {16}});
  CHECK(parts.ahead.on_wave_report(report) == wave_progress::over);
  third.phase = assignment_phase::waiting;
  archive state;
  auto next = next_step::event;
  parts.recover.persist(state, next);
  return state;
}

void load(federation_parts& parts, const archive& saved) {
  archive state(saved.contents(), 0, saved.size());
  auto next = next_step::task;
  parts.recover.persist(state, next);
  state.expect_end();
  CHECK(next == next_step::event);
}

} // namespace

TEST_CASE("resuming reruns assignments in flight up to their position, then starts the others") {
  const auto toy = unknown_sizes(1000);
  const auto saved = saved_of(toy);
  federation_parts parts(toy.settings);
  load(parts, saved);
  CHECK(parts.in_flight.at({0}).phase == assignment_phase::finished);
  CHECK(as_number(parts.in_flight.at({0}).result.upload) == 5);
  CHECK(parts.in_flight.at({1}).phase == assignment_phase::rerunning);
  CHECK(parts.in_flight.at({2}).phase == assignment_phase::waiting);
  CHECK_FALSE(parts.dispatch.pool().is_available({1}));

  CHECK_FALSE(parts.recover.begin_rerun());
  auto commands = parts.commands();
  const auto& wave = std::get<start_rounds>(commands.back());
  REQUIRE(wave.assignments.size() == 1);
  CHECK(wave.assignments[0].id == assignment_id{1});
  wave_report report;
  report.issued.push_back({.id = {{1}, 0, 0}, .rows = 4, .bytes = 10, .width = 64, .compute_duration = 2s});
  CHECK(parts.ahead.on_wave_report(report) == wave_progress::over);
  CHECK(parts.recover.continue_rerun());
  parts.recover.compute_for({2});
  commands = parts.commands();
  CHECK((std::get<start_rounds>(commands.back()).assignments.at(0).id == assignment_id{2}));
}

TEST_CASE("a result that is not stored is recomputed when virtual time needs it") {
  const auto toy = unknown_sizes(0);
  const auto saved = saved_of(toy);
  federation_parts parts(toy.settings);
  load(parts, saved);
  auto& first = parts.in_flight.at({0});
  CHECK(first.phase == assignment_phase::evicted);
  CHECK(first.upload_bytes() == 16);
  parts.recover.compute_for({0});
  CHECK(first.phase == assignment_phase::rerunning);
  wave_report report;
  report.finished.push_back({.id = {0}, .result = {.upload = as_tensors(5), .rows = 4}, .bytes = {16}});
  CHECK(parts.ahead.on_wave_report(report) == wave_progress::over);
  CHECK(parts.recover.continue_rerun());
  CHECK(first.phase == assignment_phase::finished);
}

TEST_CASE("a resumed run without rounds to rerun continues immediately") {
  const auto toy = unknown_sizes(1000);
  federation_parts first(toy.settings);
  first.dispatch.plan_task({});
  first.round.is_open = false;
  archive state;
  auto next = next_step::round;
  first.recover.persist(state, next);
  federation_parts parts(toy.settings);
  archive loaded(state.contents(), 0, state.size());
  parts.recover.persist(loaded, next);
  CHECK(next == next_step::round);
  CHECK(parts.recover.begin_rerun());
}

TEST_CASE("a checkpoint that continues with an event of no open round is refused") {
  const auto toy = unknown_sizes(1000);
  federation_parts first(toy.settings);
  first.round.is_open = false;
  archive state;
  auto next = next_step::event;
  first.recover.persist(state, next);
  federation_parts parts(toy.settings);
  archive loaded(state.contents(), 0, state.size());
  CHECK_THROWS_AS(parts.recover.persist(loaded, next), archive_error);
}
