#include "tests/support/scratch.hpp"
#include "tools/study/sweep_plan.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

const std::string tiny = "[data]\nname = \"synthetic\"\n[strategy]\nname = \"fedavg\"\n";

bool has_message(const diagnostics& found, const std::string& where, const std::string& text) {
  for (const auto& problem : found)
    if (problem.where.find(where) != std::string::npos && problem.text.find(text) != std::string::npos)
      return true;
  return false;
}

} // namespace

TEST_CASE("seeds are parsed as lists and ranges") {
  CHECK(*parse_seeds("--seeds", "") == std::vector<std::int64_t>{});
  CHECK(*parse_seeds("--seeds", "1-3,7") == std::vector<std::int64_t>{1, 2, 3, 7});
  CHECK(*parse_seeds("--seeds", "0") == std::vector<std::int64_t>{0});
  for (const char* text : {"1-", "-1", "3-1", "1,,2", "1-3,2", "x", "1-9999999999"})
    CHECK_FALSE(parse_seeds("--seeds", text));
}

TEST_CASE("commas inside lists and quotes do not separate values") {
  const auto axis = parse_axis("model.hidden=[100],[200,100],{a = 1, b = 2},\"x,y\",z");
  REQUIRE(axis);
  CHECK(axis->key == "model.hidden");
  CHECK(axis->values == std::vector<std::string>{"[100]", "[200,100]", "{a = 1, b = 2}", "\"x,y\"", "z"});
  CHECK_FALSE(parse_axis("rounds.cohort"));
  CHECK_FALSE(parse_axis("rounds.cohort="));
}

TEST_CASE("a grid has every combination once, with the seed varying fastest") {
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  const auto plan = plan_sweep({.scenarios = {here.path() / "a.toml"},
                                .axes = {{"rounds.cohort", {"5", "10"}}, {"training.epochs", {"1", "2"}}},
                                .settings = {{"rounds.per_task", "3"}},
                                .seeds = {4, 5}});
  REQUIRE(plan);
  REQUIRE(plan->runs.size() == 8);
  CHECK(plan->by == std::vector<std::string>{"rounds.cohort", "training.epochs"});
  CHECK(plan->runs[0].label == "a rounds.cohort=5 training.epochs=1 seed=4");
  CHECK(plan->runs[1].label == "a rounds.cohort=5 training.epochs=1 seed=5");
  CHECK(plan->runs[7].label == "a rounds.cohort=10 training.epochs=2 seed=5");
  CHECK(plan->runs[6].scenario.rounds.cohort == 10);
  CHECK(plan->runs[6].scenario.training.epochs == 2);
  CHECK(plan->runs[6].scenario.rounds.per_task == 3);
  CHECK(plan->runs[6].scenario.seed == 4);
  CHECK(plan->runs[6].digest == scenario_digest(plan->runs[6].scenario));
}

TEST_CASE("all errors of a grid are reported once, before it runs") {
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  const auto errors = plan_sweep({.scenarios = {here.path() / "a.toml", here.path() / "b.toml"},
                                  .axes = {{"rounds.cohort", {"5", "-1"}}},
                                  .seeds = {1, 2}});
  REQUIRE_FALSE(errors);
  CHECK(errors.error().size() == 2);
  CHECK(has_message(errors.error(), "--over", "rounds.cohort = -1"));
  CHECK(has_message(errors.error(), "b.toml", "no such file"));
  const auto equal = plan_sweep({.scenarios = {here.path() / "a.toml"}, .axes = {{"worker.count", {"1", "2"}}}});
  REQUIRE_FALSE(equal);
  CHECK(has_message(equal.error(), "", "are the same run"));
  CHECK_FALSE(plan_sweep({.scenarios = {here.path() / "a.toml"}, .axes = {{"seed", {"1"}}}, .seeds = {1}}));
  CHECK_FALSE(plan_sweep({}));
  const auto checked = check_sweep_points(
      {.scenarios = {here.path() / "a.toml"}, .axes = {{"rounds.cohort", {"5", "-1"}}}, .seeds = {1, 2}});
  CHECK(checked.runs.size() == 2); // valid points remain for further checks
  CHECK(has_message(checked.errors, "--over", "rounds.cohort = -1"));
}

TEST_CASE("a sweep is read from its own file") {
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  write_file(here.path() / "s.toml", "[sweep]\nscenarios = [\"a.toml\"]\nseeds = \"1-2\"\n[sweep.over]\n"
                                     "training.learning_rate = [0.1, 0.01]\n\"model.hidden\" = [[10], [20, 10]]\n"
                                     "[sweep.set]\nmodel.name = \"mlp\"\n");
  CHECK(is_sweep_file(here.path() / "s.toml"));
  CHECK_FALSE(is_sweep_file(here.path() / "a.toml"));
  const auto request = read_sweep(here.path() / "s.toml");
  REQUIRE(request);
  CHECK(request->scenarios == std::vector<std::filesystem::path>{here.path() / "a.toml"});
  CHECK(request->seeds == std::vector<std::int64_t>{1, 2});
  const auto plan = plan_sweep(*request);
  REQUIRE(plan);
  CHECK(plan->runs.size() == 8);
}

TEST_CASE("errors in a sweep file are reported with their location") {
  const scratch_folder here;
  write_file(here.path() / "s.toml", "[data]\nname = \"mnist\"\n[sweep]\nscenario = [\"a.toml\"]\nseeds = [1, 1]\n"
                                     "scenarios = [3]\n[sweep.over]\nrounds.cohort = 5\n");
  const auto errors = read_sweep(here.path() / "s.toml");
  REQUIRE_FALSE(errors);
  CHECK(errors.error().size() == 5);
  CHECK(has_message(errors.error(), "s.toml:1", "unknown section 'data'"));
  CHECK(has_message(errors.error(), "s.toml:4:1", "unknown key 'scenario' in [sweep]; did you mean 'scenarios'?"));
  CHECK(has_message(errors.error(), "s.toml:5", "seed 1 occurs twice"));
  CHECK(has_message(errors.error(), "s.toml:6", "expected the path of a scenario, found 3"));
  CHECK(has_message(errors.error(), "s.toml:8", "rounds.cohort = 5: expected a list"));
}
