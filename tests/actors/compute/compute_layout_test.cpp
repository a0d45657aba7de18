#include "actors/compute/compute_layout.hpp"
#include "tests/support/loaded.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

/// @param keys lines of sections, each with its section's name
std::string scenario_with(const std::string& model, const std::string& more) {
  return "[data]\nname = \"synthetic\"\nshape = [64]\nclasses = 10\nrows = 2000\n[tasks]\nkind = \"single\"\n"
         "[partition]\nkind = \"iid\"\n[clients]\ncount = 40\n[strategy]\nname = \"fedavg\"\n[model]\n" +
         model + more;
}

const std::string small_mlp = "name = \"mlp\"\nhidden = [32]\n";
const std::string large_mlp = "name = \"mlp\"\nhidden = [4096]\n";

} // namespace

TEST_CASE("on a CPU every worker hosts a shard where a wave keeps it busy") {
  const auto run = loaded(scenario_with(large_mlp, "[rounds]\ncohort = 8\n"));
  const auto layout = layout_of(*run, 4);
  CHECK(layout.workers == 4);
  CHECK(layout.hosts == 4);
  CHECK(layout.shards == 4);
  CHECK(layout_of(*run, 16).hosts == 8); // no more clients are at work
  CHECK(layout_of(*run, 16).workers == 16);
  CHECK(layout_of(*run, 1).shards == 1);
}

TEST_CASE("where nobody trains one worker hosts all shards") {
  const auto run = loaded(scenario_with(small_mlp, "[training]\nepochs = 0\n"));
  CHECK(layout_of(*run, 4).hosts == 1);
  CHECK(layout_of(*run, 4).workers == 4); // evaluations have rows
}

TEST_CASE("stated numbers of shards and workers hold") {
  const auto run = loaded(scenario_with(large_mlp, "[worker]\nshards = 3\ncount = 2\n"));
  CHECK(layout_of(*run, 8).shards == 3);
  CHECK(layout_of(*run, 8).workers == 2);
}

TEST_CASE("on a GPU one worker hosts all shards, and nothing follows from the number of threads") {
  const auto run = loaded(scenario_with(large_mlp, "[worker]\nshards = 3\n"));
  run->device = "cuda:0";
  for (const std::int64_t threads : {1, 8}) {
    const auto layout = layout_of(*run, threads);
    CHECK(layout.workers == 1);
    CHECK(layout.hosts == 1);
    CHECK(layout.shards == 3);
    CHECK(layout.batches_per_worker == 1);
  }
}

TEST_CASE("short jobs are cut into more batches, long ones and those of other devices are not") {
  CHECK(layout_of(*loaded(scenario_with(small_mlp, "")), 2).batches_per_worker > 1);
  CHECK(layout_of(*loaded(scenario_with(small_mlp, "")), 1).batches_per_worker == 1);
  CHECK(layout_of(*loaded(scenario_with(large_mlp, "")), 2).batches_per_worker == 1);
}
