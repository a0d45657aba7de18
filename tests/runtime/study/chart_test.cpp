#include "runtime/study/chart.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

} // namespace

TEST_CASE("a curve lies where its values are, and its band around it") {
  line_chart chart{.text = {"a", "Title <1>", "Words", "x", "y"}, .y_min = 0.0, .y_max = 100.0};
  chart.curves.push_back(
      {.name = "one", .points = {{0.0, 0.0}, {10.0, 100.0}}, .band = {{0.0, 0.0, 50.0}, {10.0, 50.0, 100.0}}});
  const auto text = svg_of(chart, false);
  // The plot is 590 wide from 70, and 310 high from 20: y = 0 is at 330.
  CHECK(count(text, "<polyline points=\"70.0,330.0 660.0,20.0 \"") == 1);
  CHECK(count(text, "<polygon points=\"70.0,175.0 660.0,20.0 660.0,175.0 70.0,330.0 \"") == 1);
  CHECK(count(text, "Title &lt;1&gt;") == 1);
  CHECK(count(text, "xmlns") == 0);
  CHECK(count(svg_of(chart, true), "xmlns=\"http://www.w3.org/2000/svg\"") == 1);
  CHECK(svg_of(chart, true) == svg_of(chart, true));
}

TEST_CASE("steps hold until the next, a single point is drawn, and marks outside are not") {
  line_chart chart{.text = {"a", "t", "d", "x", "y"}, .marks = {5.0, 99.0}, .y_min = 0.0, .y_max = 10.0};
  chart.curves.push_back({.name = "one", .points = {{0.0, 0.0}, {10.0, 10.0}}, .stepped = true});
  auto text = svg_of(chart, false);
  CHECK(count(text, "70.0,330.0 660.0,330.0 660.0,20.0 ") == 1);
  CHECK(count(text, "stroke-dasharray=\"4 4\"") == 1);
  chart.curves = {{.name = "one", .points = {{3.0, 5.0}}}};
  text = svg_of(chart, false);
  CHECK(count(text, "365.0,175.0 365.0,175.0 ") == 1);
  CHECK(count(svg_of(line_chart{.text = {"a", "t", "d", "x", "y"}}, false), "nan") == 0);
}

TEST_CASE("a long curve is drawn with a thousand points, and what stands out in it stays") {
  line_chart chart{.text = {"a", "t", "d", "x", "y"}, .y_min = 0.0, .y_max = 100.0};
  chart_curve curve{.name = "one"};
  for (int x = 0; x <= 10'000; ++x) { // 50, but for 100 at 2,500 and 0 at 5,000; the band is from 40 to 60
    curve.points.emplace_back(x, x == 2500 ? 100.0 : x == 5000 ? 0.0 : 50.0);
    curve.band.push_back({double(x), x == 5000 ? 0.0 : 40.0, 60.0});
  }
  chart.curves.push_back(std::move(curve));
  const auto text = svg_of(chart, false);
  const auto line = text.substr(text.find("<polyline points=\"")), drawn = line.substr(0, line.find("\" fill"));
  // 10,001 points are 477 stretches of 21, and of each the first of the lowest and the last of the highest are drawn.
  CHECK(count(drawn, ",") == 2 * 477);
  CHECK(count(drawn, "217.5,20.0 ") == 1);
  CHECK(count(drawn, "365.0,330.0 ") == 1);
  const auto band = text.substr(text.find("<polygon points=\"")), edges = band.substr(0, band.find("\" fill"));
  CHECK(count(edges, ",") == 2 * 477);
  CHECK(count(edges, ",330.0 ") == 1);
  CHECK(count(edges, ",144.0 ") == 477);
}

TEST_CASE("a heat map has a cell for each value, darker where it is larger") {
  const heat_map map{.text = {"m", "t", "d", "task", "after task"},
                     .rows = {"1", "2"},
                     .columns = {"1", "2"},
                     .values = {{0.0, std::nullopt}, {50.0, 100.0}}};
  const auto text = svg_of(map, false);
  CHECK(count(text, "<rect ") == 3);
  CHECK(count(text, "fill=\"#f7fbff\"") == 1);
  CHECK(count(text, "fill=\"#08306b\"><title>after task 2, task 2: 100.00</title>") == 1);
  CHECK(count(text, ">50.0</text>") == 1);
}
