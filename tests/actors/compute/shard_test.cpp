// Tests shard without actors and threads: rounds and outcomes go in, reports and batches come out.
#include <ATen/core/Tensor.h> // before Catch2, whose CHECK must be the last definition

#include "actors/compute/shard.hpp"
#include "runtime/training/executor.hpp"
#include "tests/actors/compute/run_fixture.hpp"
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Wave with assignments 10, 11, ... of clients 0, 1, ..., whose downloads end after 0, 1, ... seconds.
start_rounds wave_of(const run_context& run, std::uint32_t clients, bool at_once = false) {
  broadcast sent;
  sent.info = {.seen_classes = {0, 2}, .current_classes = {0, 2}};
  sent.weights = weights_only(initial_weights(*run.net, 1));
  const auto in = std::make_shared<const broadcast>(std::move(sent));
  start_rounds wave{.at_once = at_once};
  for (std::uint32_t c = 0; c < clients; ++c) {
    wave.assignments.push_back(
        {.id = {10 + c}, .client = {c}, .in = in, .memory = nullptr, .samples = {}, .seed = 1, .visit = 0});
    wave.ready.push_back(virtual_time{std::chrono::seconds(c)});
  }
  return wave;
}

composition ids_of(std::vector<std::uint64_t> assignments) {
  composition ids;
  for (const auto id : assignments)
    ids.push_back({{id}, 0, 0});
  return ids;
}

std::vector<std::uint64_t> finished(const wave_report& report) {
  std::vector<std::uint64_t> ids;
  for (const auto& round : report.finished)
    ids.push_back(round.id.value);
  return ids;
}

outcomes computed(const ready_batch& batch) { return make_executor("cpu")->run(batch.jobs); }

} // namespace

TEST_CASE("shard reports the jobs of its clients in id order, then ends the wave") {
  const auto run = hand_made_run(6);
  shard_of_loop host(*run);
  auto& tested = host.tested;
  auto wave = wave_of(*run, 3);
  std::reverse(wave.assignments.begin(), wave.assignments.end());
  tested.start(std::move(wave));
  CHECK(tested.take_batches().empty());
  const auto reports = tested.take_reports();
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].last);
  CHECK_FALSE(reports[0].released);
  REQUIRE(reports[0].issued.size() == 3);
  for (std::uint64_t i = 0; i < 3; ++i) {
    CHECK((reports[0].issued[i].id == job_id{{10 + i}, 0, 0}));
    CHECK(reports[0].issued[i].rows == 10);
    CHECK(reports[0].issued[i].key == reports[0].issued[0].key);
  }
  CHECK(tested.take_reports().empty());
}

TEST_CASE("shard makes exactly the released batches ready and reports after the last outcome") {
  const auto run = hand_made_run(6);
  shard_of_loop host(*run);
  auto& tested = host.tested;
  tested.start(wave_of(*run, 4));
  (void)tested.take_reports();
  tested.release({ids_of({11, 13}), ids_of({10})}); // 12 stays parked
  auto batches = tested.take_batches();
  REQUIRE(batches.size() == 2);
  CHECK((batches[0].ids == ids_of({11, 13})));
  CHECK(batches[0].jobs.size() == 2);
  CHECK(batches[0].multiplications == 2 * batches[1].multiplications);
  CHECK(tested.take_batches().empty());

  tested.on_batch_done(batches[1].ids, computed(batches[1])); // the order of batches does not matter
  CHECK(tested.take_reports().empty());                       // small uploads wait for the others
  tested.on_batch_done(batches[0].ids, computed(batches[0]));
  const auto reports = tested.take_reports();
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].last);
  CHECK(finished(reports[0]) == std::vector<std::uint64_t>{10, 11, 13});
  CHECK(reports[0].issued.empty());

  tested.release({ids_of({12})});
  batches = tested.take_batches();
  tested.on_batch_done(batches.at(0).ids, computed(batches.at(0)));
  CHECK(finished(tested.take_reports().at(0)) == std::vector<std::uint64_t>{12});
}

TEST_CASE("shard rejects a started round and a job that is not parked") {
  const auto run = hand_made_run(6);
  shard_of_loop host(*run);
  auto& tested = host.tested;
  const auto complaint = [&](const composition& ids) {
    CHECK_THROWS_WITH(tested.release({ids}), ContainsSubstring("was released, but is not waiting"));
  };
  tested.start(wave_of(*run, 2)); // starts 10 and 11
  CHECK_THROWS_WITH(tested.start(wave_of(*run, 1)), "assignment 10 was started a second time");
  complaint(ids_of({12}));
  complaint({{.assignment = {10}, .stage = 1, .step = 0}});
  complaint({{.assignment = {10}, .stage = 0, .step = 1}});
  tested.release({ids_of({10})});
  complaint(ids_of({11, 10}));
}

TEST_CASE("shard reports large uploads early and marks the last report") {
  const auto run = hand_made_run(6, 20'000);
  shard_of_loop host(*run);
  auto& tested = host.tested;
  tested.start(wave_of(*run, 2));
  (void)tested.take_reports();
  tested.release({ids_of({10}), ids_of({11})});
  const auto batches = tested.take_batches();
  tested.on_batch_done(batches.at(1).ids, computed(batches.at(1)));
  auto reports = tested.take_reports();
  REQUIRE(reports.size() == 1);
  CHECK_FALSE(reports[0].last);
  CHECK(finished(reports[0]) == std::vector<std::uint64_t>{11});
  tested.on_batch_done(batches.at(0).ids, computed(batches.at(0)));
  reports = tested.take_reports();
  CHECK(finished(reports.at(0)) == std::vector<std::uint64_t>{10});
  CHECK(reports.back().last);
  CHECK(std::count_if(reports.begin(), reports.end(), [](const wave_report& one) { return one.last; }) == 1);
}

TEST_CASE("shard on a node reports uploads batch by batch, whatever their size") {
  const auto run = hand_made_run(6);
  for (const bool is_node : {false, true}) {
    run->gate = is_node ? std::make_shared<backpressure_gate>([] { return false; }) : nullptr;
    shard_of_loop host(*run);
    auto& tested = host.tested;
    tested.start(wave_of(*run, 4));
    (void)tested.take_reports();
    tested.release({ids_of({10, 11}), ids_of({12, 13})});
    const auto batches = tested.take_batches();
    tested.on_batch_done(batches.at(0).ids, computed(batches.at(0)));
    auto reports = tested.take_reports();
    REQUIRE(reports.size() == (is_node ? 1 : 0));
    if (is_node) {
      CHECK_FALSE(reports[0].last);
      CHECK(finished(reports[0]) == std::vector<std::uint64_t>{10, 11});
    }
    tested.on_batch_done(batches.at(1).ids, computed(batches.at(1)));
    reports = tested.take_reports();
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].last);
    CHECK(finished(reports[0]) ==
          (is_node ? std::vector<std::uint64_t>{12, 13} : std::vector<std::uint64_t>{10, 11, 12, 13}));
  }
}

TEST_CASE("shard on a node rejects a job whose weights do not fit its net") {
  const auto run = hand_made_run(6);
  run->gate = std::make_shared<backpressure_gate>([] { return false; });
  shard_of_loop host(*run);
  auto wave = wave_of(*run, 1);
  broadcast sent = *wave.assignments[0].in;
  sent.weights = weights_only(at::zeros({run->net->size() + 1}));
  wave.assignments[0].in = std::make_shared<const broadcast>(std::move(sent));
  CHECK_THROWS_WITH(host.tested.start(std::move(wave)),
                    ContainsSubstring("job 10.0.0: start weights are Float[24]; expected contiguous float32 [23]"));
}

TEST_CASE("shard runs rounds started at once without a release and reports their batches") {
  const auto run = hand_made_run(6);
  shard_of_loop host(*run);
  auto& tested = host.tested;
  tested.start(wave_of(*run, 4, true));
  const auto batches = tested.take_batches();
  auto reports = tested.take_reports();
  REQUIRE(reports.size() == 1);
  CHECK_FALSE(reports[0].last);
  CHECK(reports[0].issued.size() == 4);
  REQUIRE(reports[0].released);
  REQUIRE(reports[0].released->size() == batches.size());
  for (std::size_t i = 0; i < batches.size(); ++i)
    CHECK((reports[0].released->at(i) == batches[i].ids));
  for (const auto& batch : batches)
    tested.on_batch_done(batch.ids, computed(batch));
  reports = tested.take_reports();
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].last);
  CHECK(finished(reports[0]) == std::vector<std::uint64_t>{10, 11, 12, 13});
}

TEST_CASE("shard fails the round of a job without an outcome, and no other round") {
  const auto run = hand_made_run(6);
  shard_of_loop host(*run);
  auto& tested = host.tested;
  tested.start(wave_of(*run, 2));
  (void)tested.take_reports();
  tested.release({ids_of({10, 11})});
  const auto batches = tested.take_batches();
  auto done = computed(batches.at(0));
  done.at(1) = std::string("it broke");
  tested.on_batch_done(batches.at(0).ids, std::move(done));
  const auto reports = tested.take_reports();
  REQUIRE(reports.size() == 1);
  CHECK(finished(reports[0]) == std::vector<std::uint64_t>{10});
  REQUIRE(reports[0].failed.size() == 1);
  CHECK(reports[0].failed[0].client == client_id{1});
  CHECK((reports[0].failed[0].last_job == job_id{{11}, 0, 0}));
  CHECK_THAT(reports[0].failed[0].reason, ContainsSubstring("it broke"));
}

TEST_CASE("shard ignores outcomes of forgotten rounds") {
  const auto run = hand_made_run(6);
  shard_of_loop host(*run);
  auto& tested = host.tested;
  tested.start(wave_of(*run, 3));
  (void)tested.take_reports();
  tested.release({ids_of({10, 11})});
  const auto batches = tested.take_batches();
  tested.forget({{11}, {12}, {99}}); // 99 does not exist
  tested.on_batch_done(batches.at(0).ids, computed(batches.at(0)));
  const auto reports = tested.take_reports();
  REQUIRE(reports.size() == 1);
  CHECK(finished(reports[0]) == std::vector<std::uint64_t>{10});
}
