#include "tools/study/accuracy_plot.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Two tasks of two rounds.
const std::vector<evaluation_record> four_rounds{
    {.task = {0}, .round = {0}, .accuracy = 40, .accuracy_per_task = {40}},
    {.task = {0}, .round = {1}, .accuracy = 100, .accuracy_per_task = {100}, .end_of_task = true},
    {.task = {1}, .round = {2}, .accuracy = 50, .accuracy_per_task = {60, 40}},
    {.task = {1}, .round = {3}, .accuracy = 45, .accuracy_per_task = {0, 90}, .end_of_task = true}};

std::size_t count_of(const std::string& text, const std::string& piece) {
  std::size_t count = 0;
  for (auto at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1))
    ++count;
  return count;
}

} // namespace

TEST_CASE("the plot has a curve per task, one for all seen classes, and a line between tasks") {
  const auto chart = task_accuracy_chart({}, four_rounds);
  REQUIRE(chart.curves.size() == 3);
  CHECK(chart.curves[0].series.name == "all seen");
  CHECK(chart.curves[0].points == std::vector<std::pair<double, double>>{{1, 40}, {2, 100}, {3, 50}, {4, 45}});
  CHECK(chart.curves[2].series.name == "task 2");
  CHECK(chart.curves[2].points == std::vector<std::pair<double, double>>{{3, 40}, {4, 90}});
  REQUIRE(chart.marks.size() == 1);
  CHECK(chart.marks[0].x == 2.5);
  const auto text = accuracy_plot_svg("two tasks", four_rounds);
  // x: 56 + 486 * (round - 1) / 3; y: 292 - 262 * accuracy / 100
  CHECK_THAT(text, ContainsSubstring("points=\"56.0,187.2 218.0,30.0 380.0,134.8 542.0,292.0 \""));
  CHECK_THAT(text, ContainsSubstring("points=\"380.0,187.2 542.0,56.2 \""));
  CHECK_THAT(text, ContainsSubstring("points=\"56.0,187.2 218.0,30.0 380.0,161.0 542.0,174.1 \""));
  CHECK(count_of(text, "<polyline") == 3);
  CHECK(count_of(text, "class=\"mark\"") == 1);
  CHECK_THAT(text, ContainsSubstring("<line x1=\"299.0\"")); // at round 2.5
  CHECK_THAT(text, ContainsSubstring(">all seen<") && ContainsSubstring(">task 2<") && ContainsSubstring(">round<"));
  CHECK_THAT(text, ContainsSubstring("stroke=\"#3182ce\"") && ContainsSubstring("stroke=\"#d9541e\""));
  CHECK(text == accuracy_plot_svg("two tasks", four_rounds));
}

TEST_CASE("markup in a title is escaped") {
  const auto text = accuracy_plot_svg("a < b & c > \x01", {});
  CHECK_THAT(text, ContainsSubstring("a &lt; b &amp; c &gt;  <") && Catch::Matchers::EndsWith("</svg>\n"));
}

TEST_CASE("a single evaluation is drawn as a marker") {
  CHECK_THAT(accuracy_plot_svg("", std::span(four_rounds).first(1)), ContainsSubstring("translate(299.0 187.2)"));
}
