// Equal digests of one scenario for any number of threads, workers, shards, widths and budgets, and under load.
#include <ATen/core/Tensor.h> // before Catch2, whose CHECK must be the last definition

#include "strategies/shared/averaging.hpp"
#include "tests/support/run.hpp"
#include "tests/support/scenario_text.hpp"
#include <catch2/catch_test_macros.hpp>
#include <thread>
using namespace mneme;
using namespace mneme::test;

namespace {

const auto eventful = eventful_scenario().with({{"data.rows", 1500},
                                                {"clients.count", 30},
                                                {"enrolment.initial", 16},
                                                {"enrolment.added_per_task", 7},
                                                {"rounds.per_task", 4},
                                                {"rounds.cohort", 9},
                                                {"training.weight_decay", 1e-4}});
/// The same scenario without a deadline.
const auto patient = eventful.without("rounds.deadline").without("rounds.late");

/// FedAvg that does not announce upload sizes, so that virtual time waits for every client's result.
class waiting final : public averaging_method {
public:
  method_needs needs() const override { return {}; }
};
const strategy_registration waiting_line{
    {.name = "waiting", .summary = "for tests", .make = []() -> std::unique_ptr<strategy> {
       return std::make_unique<waiting>();
     }}};

const finished_run& reference() {
  static const auto run = run_toml(eventful, {.threads = 1, .trace = true});
  return run;
}

/// Keeps every core busy during its lifetime.
class load {
public:
  load() {
    for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i)
      threads_.emplace_back([](const std::stop_token& stop) {
        volatile unsigned spins = 0;
        while (!stop.stop_requested())
          spins = spins + 1;
      });
  }

private:
  std::vector<std::jthread> threads_;
};

} // namespace

TEST_CASE("the test scenario has drop-outs, late uploads and stale steps") {
  const auto& run = reference();
  CHECK(run.summary.status == "done");
  CHECK(run.summary.late_uploads > 3);
  CHECK(run.summary.dropped > 3);
  CHECK(run.summary.enrolled_max == 30);
  CHECK(run.summary.fused_width_mean > 1.5);
  CHECK(run.summary.rounds == 12);
}

TEST_CASE("the digest does not depend on threads, workers, widths, shards and budgets") {
  const auto expected = reference().summary.run_digest;
  for (const std::int64_t threads : {2, 8})
    CHECK(run_toml(eventful, {.threads = threads}).summary.run_digest == expected);
  const std::vector<std::pair<std::string, std::vector<std::string>>> table{
      {"worker.count", {"1", "2", "4"}},
      {"worker.fused_clients_max", {"1", "4", "0"}},
      {"worker.shards", {"1", "2", "5"}},
      {"worker.lookahead_memory", {"1 B", "3 KiB", "1 GiB"}},
  };
  for (const auto& [key, values] : table)
    for (const auto& value : values) {
      INFO(key << " = " << value);
      const auto run = run_toml(eventful, {.over = {{key, value}}});
      CHECK(run.summary.run_digest == expected);
      CHECK(run.model == reference().model);
      CHECK(run.metrics == reference().metrics);
    }
}

TEST_CASE("folding uploads while others are computed leaves events, weights and digest unchanged") {
  const auto async = patient.without("rounds.cohort")
                         .with({{"rounds.mode", "async"}, {"rounds.concurrency", 8}, {"rounds.buffer", 3}});
  for (const auto& scenario : {eventful, eventful.with({{"rounds.late", "drop"}}), patient, async}) {
    const auto run_in = [&](const char* room, const char* method) {
      // Uploads of 620 KB, each reported as soon as it is computed.
      return run_toml(scenario, {.over = {{"worker.lookahead_memory", room},
                                          {"worker.fused_clients_max", "2"},
                                          {"worker.shards", "2"},
                                          {"model.hidden", "[8192]"},
                                          {"training.epochs", "1"},
                                          {"strategy.name", method}},
                                 .trace = true});
    };
    const auto slow = run_in("2 MiB", "waiting");
    CHECK(slow.summary.status == "done");
    for (const char* room : {"1 B", "2 MiB", "1 GiB"}) {
      INFO(scenario.text() << room);
      const auto run = run_in(room, "fedavg");
      CHECK(run.summary.run_digest == slow.summary.run_digest);
      CHECK(run.events == slow.events);
      CHECK(run.model == slow.model);
      CHECK(run.metrics == slow.metrics);
      if (room == std::string_view("2 MiB")) // batches do not depend on timing
        CHECK(run.summary.trace_digest == run_in(room, "fedavg").summary.trace_digest);
    }
  }
}

TEST_CASE("hosting shards on several workers leaves events, weights and digest unchanged") {
  for (const auto& scenario : {eventful, patient.with({{"rounds.cohort", 24}})}) {
    const auto run = [&](std::int64_t threads, const char* shards, const char* momentum, bool trace = true) {
      return run_toml(scenario,
                      {.over = {{"worker.shards", shards}, {"model.hidden", "[1024]"}, {"training.momentum", momentum}},
                       .threads = threads,
                       .trace = trace});
    };
    for (const char* momentum : {"0.0", "0.9"}) { // trained one by one, and stacked
      const auto expected = run(1, "4", momentum);
      REQUIRE(expected.summary.status == "done");
      for (const std::int64_t threads : {2, 3, 4}) {
        INFO(scenario.text() << "momentum " << momentum << ", " << threads << " threads");
        const auto here = run(threads, "4", momentum);
        CHECK(here.summary.run_digest == expected.summary.run_digest);
        CHECK(here.events == expected.events);
        CHECK(here.model == expected.model);
        CHECK(here.metrics == expected.metrics);
        CHECK(here.summary.fused_width_mean < 0.9 * expected.summary.fused_width_mean); // narrower batches
        if (threads != 3)
          continue;
        CHECK(run(threads, "4", momentum).summary.trace_digest == here.summary.trace_digest);
        CHECK(run(threads, "4", momentum, false).summary.run_digest == expected.summary.run_digest);
      }
    }
  }
}

namespace {

void check_digests_under_load(int times) {
  const auto digest = [](std::int64_t threads, const char* hidden) {
    return run_toml(eventful, {.over = {{"worker.shards", "3"}, {"model.hidden", hidden}}, .threads = threads})
        .summary.run_digest;
  };
  for (const char* hidden : {"[16]", "[1024]"}) { // with one host, and with several
    const auto expected = digest(1, hidden);
    const load busy;
    for (int i = 0; i < times; ++i)
      for (const std::int64_t threads : {3, 24})
        CHECK(digest(threads, hidden) == expected);
  }
}

} // namespace

TEST_CASE("two runs under load have equal digests") { check_digests_under_load(2); }

TEST_CASE("twenty runs under load have equal digests", "[slow]") { check_digests_under_load(20); }

TEST_CASE("tracing leaves the run digest unchanged, and trace digests repeat") {
  CHECK(run_toml(eventful).summary.run_digest == reference().summary.run_digest);
  CHECK(run_toml(eventful, {.threads = 1, .trace = true}).summary.trace_digest == reference().summary.trace_digest);
}

TEST_CASE("rerunning the resolved scenario of a run gives the same digest") {
  const auto again = run_toml(reference().scenario);
  CHECK(again.summary.run_digest == reference().summary.run_digest);
  CHECK(again.scenario == reference().scenario);
}

TEST_CASE("another seed gives another digest") {
  CHECK(run_toml(eventful, {.over = {{"seed", "4"}}}).summary.run_digest != reference().summary.run_digest);
}

TEST_CASE("trainings with different learning rates never share a batch") {
  // The memory limit allows two jobs to be computed ahead. Jobs of late clients wait until the jobs of the next round,
  // which has another rate, are parked.
  const overrides falling{{"training.schedule", "cosine"}, {"worker.shards", "1"}};
  auto with = [&](const char* key, const char* value) {
    auto over = falling;
    over.emplace_back(key, value);
    return run_toml(eventful, {.over = over}).summary.run_digest;
  };
  const auto alone = with("worker.fused_clients_max", "1");
  CHECK(with("worker.fused_clients_max", "64") == alone);
  for (const char* room : {"3 KiB", "5 KiB", "6 KiB", "8 KiB", "10 KiB"})
    CHECK(with("worker.lookahead_memory", room) == alone);
  CHECK(alone != reference().summary.run_digest);
}
