#include "actors/run/reproduce_run.hpp"
#include "tests/support/interrupted_runs.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

TEST_CASE("repeat_run() reproduces a run from its folder and rejects a changed scenario") {
  const workshop shop(small_scenario({{"clients.count", 4}, {"rounds.cohort", 4}}));
  const auto first = shop.run("a", {.threads = 1});
  const auto again =
      reproduce_run(shop.path("a"), {.out = shop.path("again"), .threads = 2, .style = progress_style::quiet});
  REQUIRE(again);
  CHECK(again->run_digest == first.run_digest);
  auto text = content_of(shop.path("a") / "scenario.toml");
  const std::string key = "cohort = 4";
  REQUIRE(text.find(key) != text.npos);
  write_file(shop.path("a") / "scenario.toml", text.replace(text.find(key), key.size(), "cohort = 3"));
  const auto other = reproduce_run(shop.path("a"), {.out = shop.path("other")});
  REQUIRE_FALSE(other);
  CHECK(other.error().front().text.find("differs from the scenario of the run") == 0);
}

TEST_CASE("digests and traced deliveries of an interrupted and resumed run equal those of a whole run") {
  const workshop shop(eventful_scenario());
  shop.run("whole", {.trace = true});
  CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 40}, workers::others) > 3);
  for (const auto* name : {"digests.csv", "deliveries.csv"}) {
    CAPTURE(name);
    const auto whole = content_of(shop.path("whole") / name);
    CHECK(whole.size() > 200);
    CHECK(content_of(shop.path("pieces") / name) == whole);
  }
}
