// Memory of clients that are never dispatched.
#include "tests/support/run.hpp"
#include "tests/support/scenario_text.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

const auto no_op = made_scenario({{"data.shape", raw_toml("[1]")},
                                  {"data.classes", 2},
                                  {"data.rows", 100},
                                  {"tasks.kind", "single"},
                                  {"partition.kind", "sampled"},
                                  {"partition.rows_per_client", 1},
                                  {"clients.count", 10000},
                                  {"rounds.per_task", 2},
                                  {"rounds.cohort", 100},
                                  {"model.name", "linear"},
                                  {"training.epochs", 0}});

} // namespace

TEST_CASE("a client that is never dispatched costs at most 64 bytes") {
  const auto few = run_toml(no_op), many = run_toml(no_op, {.over = {{"clients.count", "4000000"}}});
  CHECK(few.summary.client_rounds == 200);
  CHECK(many.summary.client_rounds == 200);
  CHECK(many.summary.clients == 4'000'000);
  CHECK(many.summary.peak_rss_bytes - few.summary.peak_rss_bytes <= 64 * (4'000'000 - 10'000));
}

TEST_CASE("a client with churn that is never dispatched costs at most 64 bytes in asynchronous runs") {
  overrides restless{{"checkpoint.every", "0"}, // a checkpoint would copy the state
                     {"rounds.mode", "async"},
                     {"tasks.transition", "staggered"},
                     {"tasks.transition_spread", "1 s"},
                     {"tasks.kind", "class-incremental"},
                     {"tasks.count", "2"},
                     {"enrolment.kind", "random"},
                     {"enrolment.arrival_mean", "1 s"},
                     {"enrolment.absence_mean", "1 h"},
                     {"devices.availability", "diurnal"}};
  const auto few = run_toml(no_op, {.over = restless});
  restless.emplace_back("clients.count", "1000000");
  const auto many = run_toml(no_op, {.over = restless});
  CHECK(many.summary.client_rounds == 40);
  CHECK(many.summary.joined > 0);
  CHECK(many.summary.peak_rss_bytes - few.summary.peak_rss_bytes <= 64 * (1'000'000 - 10'000));
}

TEST_CASE("a round of clients that do not train leaves the model unchanged for any number of threads") {
  const auto single = run_toml(no_op, {.threads = 1}), three = run_toml(no_op, {.threads = 3});
  CHECK(single.summary.run_digest == three.summary.run_digest);
  CHECK(single.model == run_toml(no_op, {.over = {{"rounds.per_task", "1"}}}).model);
}
