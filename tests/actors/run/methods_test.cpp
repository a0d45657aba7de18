// Methods in whole runs: what only a scenario can show.
#include "tests/support/run.hpp"
#include "tests/support/scenario_text.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

TEST_CASE("Fed-LwF runs where domains change, and where clients change task one by one", "[lwf]") {
  const auto digest_of_run = [](const std::string& method, const settings& more) {
    settings given{{"strategy.name", method}};
    given.insert(given.end(), more.begin(), more.end());
    const auto run = run_toml(small_scenario(given), {.threads = 1});
    CHECK(run.summary.status == "done");
    return run.summary.run_digest;
  };
  const settings domains{{"tasks.kind", "\"domain-incremental\""}, {"tasks.transform", "\"permute\""}};
  const settings staggered{{"tasks.transition", "\"staggered\""}, {"tasks.transition_spread", "\"2 s\""}};
  (void)digest_of_run("\"fed-lwf\"", domains);
  CHECK(digest_of_run("\"fed-lwf\"", staggered) != digest_of_run("\"fedavg\"", staggered));
}

TEST_CASE("STSA is refused where clients change task one by one, at the key that says so", "[stsa]") {
  const settings stsa{{"strategy.name", "\"stsa\""}, {"strategy.adaptation_rounds", "2"}};
  const auto with = [&](settings more) {
    more.insert(more.begin(), stsa.begin(), stsa.end());
    return small_scenario(more);
  };
  CHECK(refusal_of(with({})).empty());
  const auto staggered =
      refusal_of(with({{"tasks.transition", "\"staggered\""}, {"tasks.transition_spread", "\"2 s\""}}));
  CHECK(staggered.starts_with("test.toml:8:14: error: tasks.transition = \"staggered\": stsa asks each client"));
}
