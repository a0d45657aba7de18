#include "runtime/federation/run_log.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

const virtual_time second{std::chrono::seconds(1)};
const delivery upload{.from = {3}, .started_from = {2}, .rows = 7, .staleness = 4};

digest128 digest_after(const std::vector<delivery>& uploads) {
  run_log log(false);
  for (const auto& delivered : uploads)
    log.delivered(second, delivered, 16);
  return log.ended(run_status::done, {}, second).digest;
}

} // namespace

TEST_CASE("deliveries are counted, and their order enters the run digest") {
  run_log log(false);
  log.delivered(second, upload, 16);
  log.delivered(second, {.from = {4}, .staleness = 1}, 8);
  CHECK(log.report().client_rounds == 2);
  CHECK(log.report().upload_bytes == 24);
  CHECK(log.report().staleness_sum == 5);
  CHECK(log.report().staleness_max == 4);
  auto other = upload;
  other.from = {9};
  CHECK(digest_after({upload, other}) != digest_after({other, upload}));
  CHECK(digest_after({upload}) == digest_after({upload}));
}

TEST_CASE("an evaluation pools rows over tasks, and a task without rows has no accuracy") {
  run_log log(false);
  const auto line = log.add_evaluation({.per_task = {{.rows = 4, .correct = 3, .loss_sum = 2.0},
                                                     {.rows = 0, .correct = 0, .loss_sum = 0.0},
                                                     {.rows = 4, .correct = 1, .loss_sum = 6.0}}});
  CHECK(line.accuracy == 50.0);
  CHECK(line.accuracy_per_task == std::vector{75.0, 0.0, 25.0});
  CHECK(line.rows_per_task == std::vector<std::int64_t>{4, 0, 4});
  CHECK(line.loss == 1.0);
  CHECK(log.add_evaluation({}).accuracy == 0.0);
}

TEST_CASE("batches enter the trace digest only with tracing, and are always counted") {
  const std::vector<shard_batches> batches{{.shard = {0}, .batches = {{{.assignment = {1}}, {.assignment = {2}}}}}};
  for (const bool trace : {false, true}) {
    run_log log(trace);
    log.released(batches);
    CHECK(log.report().batches == 1);
    CHECK(log.report().jobs == 2);
    const auto ended = log.ended(run_status::done, {}, {});
    CHECK((ended.trace_digest != digest128{}) == trace);
    CHECK(ended.digest == digest128{});
  }
}

TEST_CASE("a failed wave is dropped with its deliveries and records") {
  run_log log(true);
  log.record(second, {}, "client", "start", client_id{1}, 0);
  log.delivered(second, upload, 16);
  log.mark(second);
  log.delivered(second + std::chrono::seconds(1), upload, 16);
  log.record(second, {}, "server", "deliver", client_id{1}, 16);
  CHECK(log.return_to_mark() == second);
  CHECK(log.report().client_rounds == 1);
  CHECK(log.take_events().events.size() == 1);
  CHECK(log.ended(run_status::failed, "why", second).digest == digest_after({upload}));
}

TEST_CASE("events are recorded only with tracing") {
  run_log silent(false), traced(true);
  for (auto* log : {&silent, &traced})
    log->record(second, {.task = {1}, .round = {2}}, "client", "start", client_id{3}, 0);
  CHECK(silent.take_events().size() == 0);
  const auto events = traced.take_events().events;
  REQUIRE(events.size() == 1);
  CHECK(events.front().round == round_id{2});
  CHECK(events.front().client == client_id{3});
  CHECK(traced.take_events().size() == 0);
}
