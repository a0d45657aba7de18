#include "runtime/results/plot.hpp"
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

TEST_CASE("the plot has a curve per task, one of all seen, and a line between the tasks") {
  const auto text = accuracy_plot_svg("two tasks", four_rounds);
  // x: 60 + 640 * (round - 1) / 3; y: 48 + 340 * (1 - accuracy / 100)
  CHECK_THAT(text, ContainsSubstring("points=\"60.00,252.00 273.33,48.00 486.67,184.00 700.00,388.00 \""));
  CHECK_THAT(text, ContainsSubstring("points=\"486.67,252.00 700.00,82.00 \""));
  CHECK_THAT(text, ContainsSubstring("points=\"60.00,252.00 273.33,48.00 486.67,218.00 700.00,235.00 \""));
  CHECK(count_of(text, "<polyline") == 3 + 3); // curves and their legend
  CHECK(count_of(text, "stroke-dasharray") == 1);
  CHECK_THAT(text, ContainsSubstring("<line x1=\"380.00\"")); // at round 2.5
  CHECK_THAT(text, ContainsSubstring(">all seen<") && ContainsSubstring(">task 2<") && ContainsSubstring(">round<"));
  CHECK_THAT(text, ContainsSubstring("stroke=\"#bd2828\"") && ContainsSubstring("stroke=\"#28bd52\""));
  CHECK(text == accuracy_plot_svg("two tasks", four_rounds));
}

TEST_CASE("a title cannot end the text it stands in") {
  const auto text = accuracy_plot_svg("a < b & c > \x01", {});
  CHECK_THAT(text, ContainsSubstring("a &lt; b &amp; c &gt;  <") && Catch::Matchers::EndsWith("</svg>\n"));
}

TEST_CASE("a single evaluation is a dot") {
  CHECK_THAT(accuracy_plot_svg("", std::span(four_rounds).first(1)),
             ContainsSubstring("points=\"380.00,252.00 380.00,252.00 \""));
}

TEST_CASE("the legend of a hundred tasks ends inside the picture") {
  const evaluation_record last{.task = {99}, .round = {999}, .accuracy_per_task = std::vector<double>(100, 50.0)};
  const auto text = accuracy_plot_svg("", std::span(&last, 1));
  CHECK(count_of(text, "<polyline") == 101 + 17);
  CHECK_THAT(text, ContainsSubstring(">... task 100<") && ContainsSubstring(">1000<"));
}
