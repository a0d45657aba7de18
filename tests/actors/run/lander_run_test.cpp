// Runs of LANDER, whose server synthesizes images between tasks in slices between which a run may be interrupted.
#include "tests/support/interrupted_runs.hpp"
#include "tests/support/run.hpp"
#include "tests/support/scenario_text.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

scenario_text dreaming_scenario() {
  return made_scenario({{"seed", 3},
                        {"data.shape", raw_toml("[3, 8, 8]")},
                        {"data.classes", 4},
                        {"data.rows", 120},
                        {"tasks.count", 2},
                        {"clients.count", 5},
                        {"rounds.per_task", 2},
                        {"rounds.cohort", 3},
                        {"model.name", "resnet8"},
                        {"model.width", 2},
                        {"training.batch", 8},
                        {"training.epochs", 1},
                        {"strategy.name", "lander"},
                        {"strategy.embedding_width", 4},
                        {"strategy.generator_rounds", 3},
                        {"strategy.warm_up", 2},
                        {"strategy.generator_steps", 2},
                        {"strategy.generator_batch", 6},
                        {"strategy.generator_width", 3},
                        {"strategy.noise_width", 4},
                        {"strategy.student_steps", 1},
                        {"strategy.task_model", "best-round"}});
}

} // namespace

TEST_CASE("LANDER has one digest for all threads, workers, widths and shards") {
  const auto whole = run_toml(dreaming_scenario(), {.threads = 1});
  CHECK(whole.summary.status == "done");
  for (const auto& over :
       {overrides{{"worker.fused_clients_max", "1"}}, overrides{{"worker.count", "3"}, {"worker.shards", "4"}}})
    CHECK(run_toml(dreaming_scenario(), {.over = over, .threads = 3}).summary.run_digest == whole.summary.run_digest);
}

TEST_CASE("LANDER resumes from any event, also during the server's image synthesis") {
  const workshop shop(dreaming_scenario().with({{"checkpoint.force", true}, {"devices.dropout", 0.1}}));
  REQUIRE(shop.run("whole", {.trace = true}).status == "done");
  CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 5}, workers::others) > 3);
  check_equal_files(shop.path("whole"), shop.path("pieces"), workers::others);
}

TEST_CASE("LANDER runs asynchronously") {
  const auto restless = dreaming_scenario()
                            .with({{"rounds.mode", "async"},
                                   {"rounds.buffer", 2},
                                   {"rounds.concurrency", 3},
                                   {"strategy.task_model", "last-round"}})
                            .without("rounds.cohort");
  const auto alone = run_toml(restless, {.threads = 1});
  CHECK(alone.summary.status == "done");
  CHECK(run_toml(restless, {.over = {{"worker.fused_clients_max", "1"}}, .threads = 2}).summary.run_digest ==
        alone.summary.run_digest);
}
