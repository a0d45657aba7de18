#include "actors/compute/compute_layout.hpp"
#include "tests/actors/compute/run_fixture.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

// A wave of a small net takes microseconds, a wave of a large net many milliseconds.
constexpr std::int64_t small = 64, large = 200'000;

TEST_CASE("layout_of() on a CPU lets every worker that a wave keeps busy host a shard") {
  const auto run = hand_made_run(8, large);
  const auto layout = layout_of(*run, 4);
  CHECK(layout.workers == 4);
  CHECK(layout.hosts == 4);
  CHECK(layout.shards == 4);
  CHECK(layout_of(*run, 16).hosts == 8); // no more than 8 clients are busy
  CHECK(layout_of(*run, 16).workers == 16);
  CHECK(layout_of(*run, 1).shards == 1);
}

TEST_CASE("layout_of() uses one host if clients do not train") {
  const auto run = hand_made_run(40, small);
  run->scenario.training.epochs = 0;
  CHECK(layout_of(*run, 4).hosts == 1);
  CHECK(layout_of(*run, 4).workers == 4);
}

TEST_CASE("layout_of() keeps the shard and worker counts of the scenario") {
  const auto run = hand_made_run(40, large);
  run->scenario.worker.shards = 3;
  run->scenario.worker.count = 2;
  CHECK(layout_of(*run, 8).shards == 3);
  CHECK(layout_of(*run, 8).workers == 2);
}

TEST_CASE("layout_of() on a GPU uses one host, whatever the number of threads") {
  const auto run = hand_made_run(40, large);
  run->scenario.worker.shards = 3;
  run->device = "cuda:0";
  for (const std::int64_t threads : {1, 8}) {
    const auto layout = layout_of(*run, threads);
    CHECK(layout.workers == 1);
    CHECK(layout.hosts == 1);
    CHECK(layout.shards == 3);
    CHECK(layout.batches_per_worker == 1);
    CHECK_FALSE(layout.control_computes);
  }
}

TEST_CASE("the first worker shares the control thread for short jobs but not for long ones") {
  const auto run = hand_made_run(40, small);
  run->control_computes = layout_of(*run, 2).control_computes;
  CHECK(run->control_computes);
  CHECK_FALSE(has_own_thread(*run, {0}));
  CHECK(has_own_thread(*run, {1}));
  CHECK_FALSE(layout_of(*hand_made_run(40, large), 2).control_computes); // ten rows of 1.4 million weights
  run->needs.upload_size_known = false;                                  // jobs may be more than a training
  CHECK_FALSE(layout_of(*run, 2).control_computes);
}

TEST_CASE("a wave of short jobs is cut into more batches than threads, a wave of long jobs is not") {
  const auto run = hand_made_run(4000, small * 4);
  CHECK(layout_of(*run, 2).batches_per_worker > 1);
  CHECK(layout_of(*run, 1).batches_per_worker == 1);
  CHECK(layout_of_nodes(*run, 1).batches_per_worker > 1); // results are folded in another process
  CHECK(layout_of_nodes(*hand_made_run(40, large), 1).batches_per_worker == 1);
  CHECK(layout_of(*hand_made_run(40, large), 2).batches_per_worker == 1);
}
