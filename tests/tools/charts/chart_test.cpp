#include "tools/charts/chart.hpp"
#include <catch2/catch_test_macros.hpp>
#include <set>
using namespace mneme;

namespace {

constexpr auto page = image_place::page;
constexpr auto file = image_place::file;
const chart_text words{"a", "Title <1>", "Words", "round", "accuracy", "Bands are bands."};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

chart_curve curve_of(std::vector<std::pair<double, double>> points, std::size_t number = 0) {
  return {.series = {.name = "curve", .look = {.number = number}, .group = number}, .points = std::move(points)};
}

} // namespace

TEST_CASE("a curve and its band are drawn at the positions of their values") {
  line_chart chart{.text = words, .y_min = 0.0, .y_max = 100.0};
  chart.curves.push_back(curve_of({{0.0, 0.0}, {10.0, 100.0}}));
  chart.curves.back().band = {{0.0, 0.0, 50.0}, {10.0, 50.0, 100.0}};
  const auto text = svg_of(chart, page);
  // The plot is 486 wide from x = 56, and 262 high from y = 30: the value 0 is at 292.
  CHECK(count(text, "<polyline points=\"56.0,292.0 542.0,30.0 \"") == 1);
  CHECK(count(text, "<polygon points=\"56.0,161.0 542.0,30.0 542.0,161.0 56.0,292.0 \"") == 1);
  CHECK(count(text, "Title &lt;1&gt;") == 1);
  CHECK(count(text, "xmlns") == 0);
  // Data for the tooltip: x, y and the band, and their positions.
  CHECK(count(text,
              "data-name=\"curve\" data-color=\"#3182ce\" class=\"curve\" data-values=\"0,0,0,50;10,100,50,100\"") ==
        1);
  CHECK(count(text, "data-x=\"0,10\" data-plot=\"56,542,30,292\"") == 1);
  CHECK(svg_of(chart, page) == text);
}

TEST_CASE("a chart file contains its title, the names of its series and a note on bands") {
  line_chart chart{.text = words};
  chart.curves.push_back(curve_of({{0.0, 0.0}, {10.0, 100.0}}));
  const auto text = svg_of(chart, file);
  CHECK(count(text, "xmlns=\"http://www.w3.org/2000/svg\"") == 1);
  CHECK(count(text, "font-weight=\"bold\">Title &lt;1&gt;</text>") == 1);
  CHECK(count(text, ">curve</text>") == 1);
  CHECK(count(text, ">Bands are bands.</text>") == 1);
  CHECK(count(text, "width=\"560\" height=\"414\"") == 1); // 30 for the title, 340, two lines of 18 and 8
  CHECK(count(text, "data-") == 1);                        // of the group
}

TEST_CASE("coinciding curves differ in dash and marker, and their markers are side by side") {
  line_chart chart{.text = words};
  std::vector<std::pair<double, double>> points;
  for (int x = 0; x < 60; ++x)
    points.emplace_back(x, 1.0);
  chart.curves = {curve_of(points, 0), curve_of(points, 1)};
  const auto text = svg_of(chart, page);
  CHECK(count(text, "stroke-linejoin=\"round\"/>") == 1); // no dashes
  CHECK(count(text, "stroke-linejoin=\"round\" stroke-dasharray=\"8 4\"/>") == 1);
  std::set<std::string> places;
  for (auto at = text.find("translate("); at != std::string::npos; at = text.find("translate(", at + 1))
    places.insert(text.substr(at, text.find(')', at) - at));
  CHECK(places.size() == 2 * 6);
  CHECK(count(text, "fill=\"#3182ce\"/>") == 6);
  CHECK(count(text, "fill=\"#d9541e\"/>") == 6);
}

TEST_CASE("steps hold until the next point, a single point has a marker, and marks outside are not drawn") {
  line_chart chart{.text = words, .marks = {{.x = 5.0}, {.x = 99.0}}, .y_min = 0.0, .y_max = 10.0};
  chart.curves.push_back(curve_of({{0.0, 0.0}, {10.0, 10.0}}));
  chart.curves.back().stepped = true;
  auto text = svg_of(chart, page);
  CHECK(count(text, "56.0,292.0 542.0,292.0 542.0,30.0 ") == 1);
  CHECK(count(text, "class=\"mark\" stroke=\"currentColor\"") == 1);
  chart.marks = {{.x = 5.0, .look = series_style{.number = 1}, .group = 1}};
  CHECK(count(svg_of(chart, page), "data-group=\"1\" class=\"mark\" stroke=\"#d9541e\"") == 1);
  chart.curves = {curve_of({{3.0, 5.0}})};
  text = svg_of(chart, page);
  CHECK(count(text, "translate(299.0 161.0)") == 1);
  CHECK(count(svg_of(line_chart{.text = words}, page), "nan") == 0);
}

TEST_CASE("a long curve is reduced to a thousand points that include its extremes") {
  line_chart chart{.text = words, .y_min = 0.0, .y_max = 100.0};
  auto curve = curve_of({});
  for (int x = 0; x <= 10'000; ++x) { // 50 except 100 at 2,500 and 0 at 5,000; the band is from 40 to 60
    curve.points.emplace_back(x, x == 2500 ? 100.0 : x == 5000 ? 0.0 : 50.0);
    curve.band.push_back({double(x), x == 5000 ? 0.0 : 40.0, 60.0});
  }
  chart.curves.push_back(std::move(curve));
  const auto text = svg_of(chart, page);
  const auto line = text.substr(text.find("<polyline points=\"")), drawn = line.substr(0, line.find("\" fill"));
  // 10,001 points are 477 intervals of 21; the first minimum and the last maximum of each are drawn.
  CHECK(count(drawn, ",") == 2 * 477);
  CHECK(count(drawn, "177.5,30.0 ") == 1);
  CHECK(count(drawn, "299.0,292.0 ") == 1);
  const auto band = text.substr(text.find("<polygon points=\"")), edges = band.substr(0, band.find("\" fill"));
  CHECK(count(edges, ",") == 2 * 2 * 477);   // above and below each point
  CHECK(count(edges, ",292.0 ") == 2);       // both points of the interval around 5,000
  CHECK(count(edges, ",134.8 ") == 2 * 477); // 60
}

TEST_CASE("bars of a category are side by side, with a whisker from minimum to maximum") {
  bar_chart chart{.text = words, .categories = {"1", "2"}};
  chart.kinds = {
      {.series = {.name = "first", .look = {}, .group = 0}, .bars = {chart_bar{50, 40, 60}, chart_bar{10, 10, 10}}},
      {.series = {.name = "second", .look = {.number = 1}, .group = 1}, .bars = {std::nullopt, chart_bar{-5, -5, -5}}}};
  const auto text = svg_of(chart, page);
  CHECK(count(text, "<rect ") == 3);
  CHECK(count(text, "class=\"whisker\"") == 1);
  // From -5 to 60 with a margin of 4 %: 70.2 units are 262 high, and a category's two bars take 3/4 of 243.
  CHECK(count(text, "<rect x=\"86.4\" y=\"77.0\" width=\"91.1\" height=\"186.6\" fill=\"#3182ce\" "
                    "data-tooltip=\"round 1, first: 50 (40 to 60)\"/>") == 1);
  CHECK(count(text, "data-tooltip=\"round 2, second: -5\"") == 1);
  CHECK(count(svg_of(chart, file), "<title>round 2, first: 10</title></rect>") == 1);
}

TEST_CASE("a heat map has a cell per value, darker for larger ones, and a scale") {
  const heat_map map{.text = {"m", "t", "d", "task", "after task"},
                     .rows = {"1", "2"},
                     .columns = {"1", "2"},
                     .values = {{0.0, std::nullopt}, {50.0, 100.0}}};
  const auto text = svg_of(map, page);
  CHECK(count(text, "<rect ") == 3);
  CHECK(count(text, "fill=\"#f7fbff\"") == 1);
  CHECK(count(text, "fill=\"#08306b\" data-tooltip=\"after task 2, task 2: 100.00\"/>") == 1);
  CHECK(count(text, ">50.0</text>") == 1);
  CHECK(count(text, "<linearGradient id=\"m-scale\"") == 1);
  for (const char* tick : {">0</text>", ">25</text>", ">50</text>", ">75</text>", ">100</text>"})
    CHECK(count(text, tick) == 1);
}

TEST_CASE("the legend of more than 18 series names the first and the last") {
  line_chart chart{.text = words};
  for (std::size_t k = 0; k < 100; ++k) {
    chart.curves.push_back(curve_of({{0.0, 1.0}}, k));
    chart.curves.back().series.name = "task " + std::to_string(k + 1);
  }
  const auto text = svg_of(chart, file);
  CHECK(count(text, ">task 17</text>") == 1);
  CHECK(count(text, ">task 18</text>") == 0);
  CHECK(count(text, ">... task 100</text>") == 1);
}
