#include "tools/study/benchmark_page.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using Catch::Approx;

namespace {

benchmark_row row(const char* track, const char* method, std::int64_t seed, double accuracy) {
  return {.track = track,
          .method = method,
          .seed = seed,
          .run_digest = "0123456789abcdef",
          .figures = {{"final_accuracy", accuracy}, {"upload_bytes", 2.5e6}}};
}

} // namespace

TEST_CASE("critical values of Nemenyi's test equal the printed table") {
  // Demsar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7 (2006), table 5(a), 0.05.
  CHECK(nemenyi_critical_value(2) == Approx(1.960).margin(5e-4));
  CHECK(nemenyi_critical_value(3) == Approx(2.343).margin(1e-3));
  CHECK(nemenyi_critical_value(5) == Approx(2.728).margin(5e-4));
  CHECK(nemenyi_critical_value(10) == Approx(3.164).margin(5e-4));
}

TEST_CASE("methods are ranked on the tracks and seeds that all of them have") {
  // Ranks on (one, 1): b, a; (one, 2): a, b; (two, 1): b, a. Track two has no seed 2 of b, and only track one has c.
  const auto table = benchmark_tables({row("one", "a", 1, 50.0), row("one", "a", 2, 70.0), row("one", "b", 1, 60.0),
                                       row("one", "b", 2, 60.0), row("one", "c", 1, 10.0), row("one", "c", 2, 90.0),
                                       row("two", "a", 1, 20.0), row("two", "a", 2, 20.0), row("two", "b", 1, 30.0)});
  REQUIRE(table.ranking.methods.size() == 2);
  CHECK(table.ranking.rankings == 3);
  CHECK(table.ranking.methods[0].first == "b");
  CHECK(*table.ranking.methods[0].second.mean == Approx(4.0 / 3.0));
  CHECK(*table.ranking.methods[1].second.mean == Approx(5.0 / 3.0));
  CHECK(table.ranking.critical_difference == Approx(1.960 * std::sqrt(2.0 * 3.0 / 18.0)).epsilon(1e-3));
  REQUIRE(table.tracks.size() == 2);
  CHECK(table.tracks[0].lines[0].method == "a"); // 60.0 as b, and c 50.0; equal means keep the order of names
  CHECK(table.tracks[0].lines[2].method == "c");
  CHECK(*table.tracks[0].lines[2].rank.mean == 2.0); // third with seed 1, first with seed 2
}

TEST_CASE("a page has a line per method with means, intervals and digests") {
  const auto table = benchmark_tables({row("one", "a", 1, 50.0), row("one", "a", 2, 70.0)});
  const auto page = benchmark_markdown(table);
  // 60 with deviation sqrt(200): half width 12.7062 * sqrt(200 / 2) = 127.1
  CHECK(page.find("| a | 60.0 ± 127.1 | - | - | 2.5 ± 0.0 | - | - | - | 1.0 ± 0.0 | 1: 01234567, 2: 01234567 |") !=
        std::string::npos);
  CHECK(page.find("needs at least two methods") != std::string::npos);
  CHECK(benchmark_html(table).find("<td>60.0 ± 127.1</td>") != std::string::npos);
}
