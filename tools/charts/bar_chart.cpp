#include "tools/charts/svg_canvas.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

constexpr double free_share = 0.25; // share of a category's width that has no bars

/// Draws a bar from zero, with a whisker from minimum to maximum if they differ.
void draw_bar(svg_canvas& on, const chart_bar& bar, const series_style& look, double left, double width,
              const std::string& words) {
  const double top = std::min(on.y(0.0), on.y(bar.value)), height = std::abs(on.y(0.0) - on.y(bar.value));
  on.add_with_tooltip("rect",
                      fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"", left, top,
                                  width, std::max(height, 1.0), look.color()),
                      words);
  if (bar.high <= bar.low)
    return;
  const double middle = left + width / 2.0, half = std::min(width / 3.0, 5.0);
  on.shapes(fmt::format("<path class=\"whisker\" d=\"M{0:.1f} {1:.1f}H{2:.1f}M{3:.1f} {1:.1f}V{4:.1f}M{0:.1f} "
                        "{4:.1f}H{2:.1f}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.2\"/>\n",
                        middle - half, on.y(bar.high), middle + half, middle, on.y(bar.low)));
}

std::string words_of(const bar_chart& chart, const chart_series& series, std::size_t category, const chart_bar& bar) {
  auto words = fmt::format("{} {}, {}: {:.4g}", chart.text.x_label, chart.categories[category], series.name, bar.value);
  if (bar.high > bar.low)
    words += fmt::format(" ({:.4g} to {:.4g})", bar.low, bar.high);
  return words;
}

} // namespace

std::string svg_of(const bar_chart& chart, image_place place) {
  axis_span y{0.0, 0.0};
  for (const auto& kind : chart.kinds)
    for (const auto& bar : kind.bars)
      if (bar)
        y = y.with(bar->value).with(bar->low).with(bar->high);
  const auto low = y.low < 0.0 ? std::nullopt : std::optional(0.0);
  svg_canvas on(place, {}, {0.0, 1.0}, with_room(y, low, std::nullopt));
  on.y_axis(chart.text);
  const double room = on.frame().plot_width() / static_cast<double>(std::max<std::size_t>(1, chart.categories.size()));
  const double width = room * (1.0 - free_share) / static_cast<double>(std::max<std::size_t>(1, chart.kinds.size()));
  const auto every = (chart.categories.size() + 19) / 20; // at most 20 categories have labels
  for (std::size_t c = 0; c < chart.categories.size(); c += every)
    on.label(on.frame().left + room * (static_cast<double>(c) + 0.5), on.frame().bottom + 5.0, chart.categories[c],
             "dy=\"1em\" text-anchor=\"middle\"");
  std::vector<chart_series> names;
  for (const auto& kind : chart.kinds) {
    on.open(kind.series, " class=\"bars\"");
    for (std::size_t c = 0; c < kind.bars.size(); ++c)
      if (const auto& bar = kind.bars[c])
        draw_bar(on, *bar, kind.series.look,
                 on.frame().left + room * (static_cast<double>(c) + free_share / 2.0) +
                     width * static_cast<double>(names.size()),
                 width, words_of(chart, kind.series, c, *bar));
    on.close();
    names.push_back(kind.series);
  }
  return on.finish(chart.text, names, "tabindex=\"0\"");
}

} // namespace mneme
