#include "tools/charts/escape_markup.hpp"
#include "tools/charts/svg_canvas.hpp"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
namespace mneme {
namespace {

constexpr double dark_from = 0.65; // text is white above this share of the scale; both text colors have a contrast of
                                   // 4.5

/// Color scale from white through blue to dark blue. It does not depend on the page's colors. @param share 0 to 1
std::string heat_color(double share) {
  const auto channel = [&](double from, double to) {
    return static_cast<int>(std::lround(from + (to - from) * share));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(247, 8), channel(251, 48), channel(255, 107));
}

/// Formats the value of a cell, with fewer digits if there are many columns; "" if there is no space.
std::string cell_text(double value, std::size_t columns) {
  return columns <= 8 ? fmt::format("{:.1f}", value) : columns <= 14 ? fmt::format("{:.0f}", value) : "";
}

/// Draws the scale from `low` (bottom) to `high` (top) with five values.
void draw_color_bar(svg_canvas& on, const heat_map& map) {
  const auto& frame = on.frame();
  const double left = frame.right + 14.0, width = 12.0;
  const auto id = escape_markup(map.text.id) + "-scale";
  on.shapes(fmt::format("<linearGradient id=\"{0}\" x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\"><stop offset=\"0\" "
                        "stop-color=\"{1}\"/><stop offset=\"1\" stop-color=\"{2}\"/></linearGradient>\n<path "
                        "class=\"scale\" d=\"M{3} {4}h{5}V{6}h-{5}z\" fill=\"url(#{0})\" stroke=\"currentColor\" "
                        "stroke-opacity=\"0.4\"/>\n",
                        id, heat_color(0.0), heat_color(1.0), left, frame.top, width, frame.bottom));
  for (int step = 0; step <= 4; ++step)
    on.label(left + width + 4.0, frame.bottom - frame.plot_height() * step / 4.0,
             tick_text(map.low + (map.high - map.low) * step / 4.0), "dy=\"0.35em\"");
}

void draw_cells(svg_canvas& on, const heat_map& map, double cell_width, double cell_height) {
  for (std::size_t r = 0; r < map.rows.size(); ++r)
    for (std::size_t c = 0; c < map.values[r].size(); ++c) {
      const auto& value = map.values[r][c];
      if (!value)
        continue;
      const double x = on.frame().left + cell_width * static_cast<double>(c);
      const double y = on.frame().top + cell_height * static_cast<double>(r);
      const double share = std::clamp((*value - map.low) / (map.high - map.low), 0.0, 1.0);
      on.add_with_tooltip("rect",
                          fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"", x, y,
                                      cell_width, cell_height, heat_color(share)),
                          fmt::format("{} {}, {} {}: {:.2f}", map.text.y_label, map.rows[r], map.text.x_label,
                                      map.column_words.empty() ? map.columns[c] : map.column_words[c], *value));
      if (const auto text = cell_text(*value, map.columns.size()); !text.empty())
        on.shapes(fmt::format("<text class=\"cell\" x=\"{:.1f}\" y=\"{:.1f}\" dy=\"0.35em\" text-anchor=\"middle\" "
                              "fill=\"{}\">{}</text>\n",
                              x + cell_width / 2.0, y + cell_height / 2.0, share > dark_from ? "#ffffff" : "#000000",
                              text));
    }
}

} // namespace

std::string svg_of(const heat_map& chart, image_place place) {
  svg_canvas on(place, {.right = 488.0}, {0.0, 1.0}, {0.0, 1.0});
  const auto& frame = on.frame();
  const double cell_width = frame.plot_width() / static_cast<double>(std::max<std::size_t>(1, chart.columns.size()));
  const double cell_height = frame.plot_height() / static_cast<double>(std::max<std::size_t>(1, chart.rows.size()));
  const auto every = [](std::size_t count) { return std::max<std::size_t>(1, (count + 19) / 20); };
  for (std::size_t c = 0; c < chart.columns.size(); c += every(chart.columns.size()))
    on.label(frame.left + cell_width * (static_cast<double>(c) + 0.5), frame.bottom + 5.0, chart.columns[c],
             "dy=\"1em\" text-anchor=\"middle\"");
  for (std::size_t r = 0; r < chart.rows.size(); r += every(chart.rows.size()))
    on.label(frame.left - 7.0, frame.top + cell_height * (static_cast<double>(r) + 0.5), chart.rows[r],
             "dy=\"0.35em\" text-anchor=\"end\"");
  draw_cells(on, chart, cell_width, cell_height);
  draw_color_bar(on, chart);
  on.label(4.0, 17.0, chart.text.y_label, "");
  on.label(frame.left + frame.plot_width() / 2.0, chart_frame::height - 7.0, chart.text.x_label,
           "text-anchor=\"middle\"");
  return on.finish(chart.text, {}, "tabindex=\"0\"");
}

} // namespace mneme
