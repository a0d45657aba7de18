// Runs that would continue forever or beyond the range of virtual time. They end with a reason.
#include "tests/support/scenario_text.hpp"
#include "tests/support/traces.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <thread>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Scenario in which clients leave before they finish any work.
const auto short_stays = small_scenario({{"tasks.kind", "single"},
                                         {"enrolment.kind", "random"},
                                         {"enrolment.arrival_mean", "1 ms"},
                                         {"enrolment.lifetime_mean", "1 ms"},
                                         {"enrolment.absence_mean", "1 ms"}});

} // namespace

TEST_CASE("a run whose virtual time would overflow fails and names the responsible keys") {
  const std::vector<std::pair<overrides, std::string>> cases{
      {{{"devices.latency", "1000000 h"}}, "devices.uplink_mbit and devices.latency"},
      {{{"devices.rows_per_second", "1e-12"}}, "devices.rows_per_second, devices.downlink_mbit and devices.latency"},
      {{{"rounds.mode", "async"}, {"rounds.concurrency", "3"}, {"devices.latency", "1000000 h"}},
       "devices.uplink_mbit and devices.latency"}};
  for (const auto& [over, keys] : cases) {
    std::string digest;
    for (const std::int64_t threads : {1, 3}) {
      INFO(over.back().first << ", " << threads << " threads");
      const auto run = run_toml(three_clients, {.over = over, .threads = threads});
      CHECK(run.summary.status == "failed");
      CHECK_THAT(run.summary.error,
                 ContainsSubstring("virtual time would exceed 146 years in round 1") && ContainsSubstring(keys));
      CHECK((digest.empty() || digest == run.summary.run_digest));
      digest = run.summary.run_digest;
    }
  }
}

TEST_CASE("a client that would never finish counts as late") {
  const auto run =
      run_toml(three_clients, {.over = {{"rounds.deadline", "5 s"}, {"devices.rows_per_second", "[4.0, 2.0, 1e-12]"}}});
  CHECK(run.summary.status == "done");
  CHECK(run.summary.late_uploads == 2); // client 2, in both rounds
  CHECK(run.summary.client_rounds == 4);
}

TEST_CASE("a deadline of the largest duration has no effect") {
  // The second round opens after nine years.
  const auto run =
      run_toml(three_clients, {.over = {{"rounds.deadline", "1000000 h"}, {"devices.latency", "40000 h"}}});
  CHECK(run.summary.status == "done");
  CHECK(run.summary.late_uploads == 0);
}

TEST_CASE("a run with churn but no deliveries fails as stalled and names the cause") {
  std::string digest;
  for (const std::int64_t threads : {1, 3}) {
    INFO(threads << " threads");
    const auto run = run_toml(short_stays, {.over = {{"rounds.mode", "async"}}, .threads = threads});
    CHECK(run.summary.status == "failed");
    CHECK_THAT(run.summary.error, ContainsSubstring("no upload arrived in the last 100600 events: in round 1"));
    CHECK(run.summary.client_rounds == 0);
    CHECK((digest.empty() || digest == run.summary.run_digest));
    digest = run.summary.run_digest;
  }
  const auto rounds = run_toml(short_stays); // rounds do not wait for clients that leave, so they close without uploads
  CHECK(rounds.summary.status == "done");
  CHECK(rounds.summary.client_rounds == 0);
}

TEST_CASE("a run with only churn events reacts to an interrupt") {
  std::atomic<int> interrupts = 0;
  std::jthread asking([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    interrupts = 1;
  });
  // Only four clients have rows, and two million changes precede the end of the run.
  const auto run =
      run_toml(short_stays.with(
                   {{"clients.count", 20'000}, {"data.rows", 4}, {"partition.kind", "iid"}, {"rounds.mode", "async"}}),
               {.interrupts = &interrupts});
  CHECK(run.summary.status == "interrupted");
}
