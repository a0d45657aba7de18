#include "tools/charts/svg_canvas.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

/// Reduces a curve with many points to the minimum and maximum of each interval, and its band to the interval's range.
chart_curve thinned(const chart_curve& curve) {
  constexpr std::size_t points_max = 1000;
  if (curve.points.size() <= points_max)
    return curve;
  chart_curve thin{.series = curve.series, .points = {}, .band = {}, .stepped = curve.stepped};
  const auto stretch = (2 * curve.points.size() + points_max - 1) / points_max;
  for (std::size_t from = 0; from < curve.points.size(); from += stretch) {
    const auto to = std::min(from + stretch, curve.points.size());
    const auto begin = curve.points.begin();
    const auto [low, high] =
        std::minmax_element(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
    axis_span band;
    for (auto k = from; k < to && !curve.band.empty(); ++k)
      band = (k == from ? axis_span{curve.band[k][1], curve.band[k][2]} : band)
                 .with(curve.band[k][1])
                 .with(curve.band[k][2]);
    const auto add = [&](const std::pair<double, double>& point) {
      thin.points.push_back(point);
      if (!curve.band.empty())
        thin.band.push_back({point.first, band.low, band.high});
    };
    add(std::min(*low, *high)); // the two are added in the order of x
    if (low != high)
      add(std::max(*low, *high));
  }
  return thin;
}

/// Formats all points as "x,y;x,y". If there is a band, ",low,high" follows each point.
std::string values_text(const chart_curve& curve) {
  std::string text;
  for (std::size_t k = 0; k < curve.points.size(); ++k) {
    text += fmt::format("{}{:.6g},{:.6g}", k > 0 ? ";" : "", curve.points[k].first, curve.points[k].second);
    if (!curve.band.empty())
      text += fmt::format(",{:.6g},{:.6g}", curve.band[k][1], curve.band[k][2]);
  }
  return text;
}

std::string polygon_of_band(const svg_canvas& on, const chart_curve& curve) {
  if (curve.band.size() < 2)
    return {};
  std::string corners;
  for (const auto& [x, low, high] : curve.band)
    corners += fmt::format("{:.1f},{:.1f} ", on.x(x), on.y(high));
  for (auto edge = curve.band.rbegin(); edge != curve.band.rend(); ++edge)
    corners += fmt::format("{:.1f},{:.1f} ", on.x((*edge)[0]), on.y((*edge)[1]));
  return fmt::format("<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.2\"/>", corners, curve.series.look.color());
}

/// Draws a curve with markers. Markers of coinciding curves are drawn side by side.
/// @param place index of the curve @param count number of curves
void draw_curve(svg_canvas& on, const chart_curve& curve, std::size_t place, std::size_t count) {
  constexpr std::size_t markers = 6;
  const auto& look = curve.series.look;
  std::string points;
  for (std::size_t k = 0; k < curve.points.size(); ++k) {
    const auto& [x, y] = curve.points[k];
    if (curve.stepped && k > 0)
      points += fmt::format("{:.1f},{:.1f} ", on.x(x), on.y(curve.points[k - 1].second));
    points += fmt::format("{:.1f},{:.1f} ", on.x(x), on.y(y));
  }
  on.open(curve.series, " class=\"curve\" data-values=\"" + values_text(curve) + "\"");
  on.shapes(polygon_of_band(on, curve));
  on.shapes(fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
                        "stroke-linejoin=\"round\"{}/>",
                        points, look.color(), look.stroke_width(), look.dash()));
  const auto step = (curve.points.size() + markers - 1) / markers;
  for (std::size_t k = place * step / count; k < curve.points.size(); k += step)
    on.shapes(look.marker(on.x(curve.points[k].first), on.y(curve.points[k].second)));
  on.close();
}

void draw_marks(svg_canvas& on, const std::vector<chart_mark>& marks, axis_span across) {
  for (const auto& mark : marks) {
    if (mark.x < across.low || mark.x > across.high)
      continue;
    const auto group = mark.group ? fmt::format("data-group=\"{}\" ", *mark.group) : "";
    on.line(on.x(mark.x), on.frame().top, on.x(mark.x), on.frame().bottom,
            fmt::format("{}class=\"mark\" stroke=\"{}\" stroke-opacity=\"{}\" stroke-dasharray=\"3 5\"", group,
                        mark.look ? mark.look->color() : "currentColor", mark.look ? 0.6 : 0.45));
  }
}

} // namespace

std::string svg_of(const line_chart& chart, image_place place) {
  std::optional<axis_span> x, y;
  const auto widen = [](std::optional<axis_span>& span, double value) {
    span = span ? span->with(value) : axis_span{value, value};
  };
  for (const auto& curve : chart.curves) {
    for (const auto& [at, value] : curve.points) {
      widen(x, at);
      widen(y, value);
    }
    for (const auto& [at, low, high] : curve.band) {
      widen(y, low);
      widen(y, high);
    }
  }
  auto across = x.value_or(axis_span{});
  if (!(across.size() > 0.0))
    across = {across.low - 0.5, across.low + 0.5};
  svg_canvas on(place, {}, across, with_room(y.value_or(axis_span{}), chart.y_min, chart.y_max));
  on.y_axis(chart.text);
  on.x_ticks(chart.whole_x);
  draw_marks(on, chart.marks, across);
  std::vector<chart_series> names;
  for (const auto& curve : chart.curves)
    names.push_back(curve.series);
  for (const bool is_total : {false, true}) // totals are drawn last, so that they are on top
    for (std::size_t k = 0; k < names.size(); ++k)
      if (names[k].look.is_total == is_total)
        draw_curve(on, thinned(chart.curves[k]), k, names.size());
  return on.finish(chart.text, names,
                   fmt::format("tabindex=\"0\" data-x=\"{:.9g},{:.9g}\" data-plot=\"{},{},{},{}\"", across.low,
                               across.high, on.frame().left, on.frame().right, on.frame().top, on.frame().bottom));
}

} // namespace mneme
