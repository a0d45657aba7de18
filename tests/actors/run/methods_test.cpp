// Properties of methods that only whole runs show.
#include "tests/support/run.hpp"
#include "tests/support/scenario_text.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

TEST_CASE("Fed-LwF supports domain-incremental tasks and clients with staggered tasks", "[lwf]") {
  const auto digest_of_run = [](const char* method, const scenario_text::keys& more) {
    const auto run = run_toml(small_scenario({{"strategy.name", method}}).with(more), {.threads = 1});
    CHECK(run.summary.status == "done");
    return run.summary.run_digest;
  };
  const scenario_text::keys domains{{"tasks.kind", "domain-incremental"}, {"tasks.transform", "permute"}};
  const scenario_text::keys staggered{{"tasks.transition", "staggered"}, {"tasks.transition_spread", "2 s"}};
  (void)digest_of_run("fed-lwf", domains);
  CHECK(digest_of_run("fed-lwf", staggered) != digest_of_run("fedavg", staggered));
}

TEST_CASE("STSA rejects staggered tasks at the key that sets them", "[stsa]") {
  const auto stsa = small_scenario({{"strategy.name", "stsa"}, {"strategy.adaptation_rounds", 2}});
  CHECK(refusal_of(stsa).empty());
  const auto staggered = refusal_of(stsa.with({{"tasks.transition", "staggered"}, {"tasks.transition_spread", "2 s"}}));
  CHECK(
      staggered.starts_with("test.toml:11:14: error: tasks.transition = \"staggered\": stsa requests the statistics"));
}
