// A method costs one file: one that is dropped in, with one scenario, is run, checked and explained as all others are.
#include "tests/support/run.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const auto scenario_file =
    std::filesystem::path(MNEME_SOURCE_DIR) / "tests" / "strategies" / "dropped_in" / "server_momentum.toml";

std::string scenario_with(const std::string& was, const std::string& is) {
  auto text = content_of(scenario_file);
  const auto at = text.find(was);
  REQUIRE(at != std::string::npos);
  return text.replace(at, was.size(), is);
}

} // namespace

TEST_CASE("a method of one file is run by its name, with its keys, presets, defaults and figures", "[dropped-in]") {
  const auto run = run_toml(content_of(scenario_file), {.threads = 1});
  CHECK(run.summary.status == "done");
  CHECK(run.summary.strategy == "server-momentum");
  CHECK(run.summary.figures.at("momentum") == 0.5);
  CHECK_THAT(run.scenario, ContainsSubstring("server_momentum = 0.5") && ContainsSubstring("learning_rate = 0.02"));
  const auto again = run_toml(content_of(scenario_file), {.threads = 2});
  CHECK(again.summary.run_digest == run.summary.run_digest);

  const auto faster = run_toml(scenario_with("server_momentum = 0.5", "server_momentum = 0.8"), {.threads = 1});
  CHECK(faster.summary.run_digest != run.summary.run_digest);
  const auto plain = run_toml(scenario_with("server_momentum = 0.5", "preset = \"plain\""), {.threads = 1});
  CHECK(plain.summary.figures.at("momentum") == 0.0);
  CHECK(plain.summary.rounds == 6); // the scenario's own three a task win over the preset's one
}

TEST_CASE("what is wrong with a scenario of a method of one file is said with its place and the likely fix",
          "[dropped-in]") {
  CHECK_THAT(refusal_of(scenario_with("server_momentum =", "server_momentun =")),
             ContainsSubstring("test.toml:26:1") && ContainsSubstring("server_momentum"));
  CHECK_THAT(refusal_of(scenario_with("momentum = 0.5", "momentum = 1.5")), ContainsSubstring("test.toml:26:"));
  CHECK_THAT(refusal_of(scenario_with("\"server-momentum\"", "\"server-momentom\"")),
             ContainsSubstring("did you mean \"server-momentum\""));
  CHECK_THAT(refusal_of(scenario_with("server_momentum = 0.5", "preset = \"plane\"")),
             ContainsSubstring("did you mean \"plain\""));
}
