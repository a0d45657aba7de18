#include "tools/charts/svg_canvas.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {

/// Draws one row per entry of `rows`, the first at the top. Each span is a bar in the color of its kind.
std::string svg_of(const span_chart& chart, image_place place) {
  const auto rows = std::max<std::size_t>(1, chart.rows.size());
  svg_canvas on(place, {}, {chart.from, chart.to > chart.from ? chart.to : chart.from + 1.0}, {0.0, 1.0});
  const auto& frame = on.frame();
  const double room = frame.plot_height() / static_cast<double>(rows), height = std::max(room * 0.7, 1.0);
  const auto every = (rows + 19) / 20; // at most 20 rows have labels
  for (std::size_t r = 0; r < chart.rows.size(); r += every)
    on.label(frame.left - 7.0, frame.top + room * (static_cast<double>(r) + 0.5), chart.rows[r],
             "dy=\"0.35em\" text-anchor=\"end\"");
  on.line(frame.left, frame.bottom, frame.right, frame.bottom, "stroke=\"currentColor\" stroke-opacity=\"0.4\"");
  on.x_ticks(false);
  on.label(4.0, 17.0, chart.text.y_label, "");
  on.label(frame.left + frame.plot_width() / 2.0, chart_frame::height - 7.0, chart.text.x_label,
           "text-anchor=\"middle\"");
  for (std::size_t k = 0; k < chart.kinds.size(); ++k) {
    on.open(chart.kinds[k], " class=\"spans\"");
    for (const auto& span : chart.spans)
      if (span.kind == k && span.row < chart.rows.size())
        on.add_with_tooltip(
            "rect",
            fmt::format("x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"", on.x(span.from),
                        frame.top + room * static_cast<double>(span.row) + (room - height) / 2.0,
                        std::max(on.x(span.to) - on.x(span.from), 0.3), height, chart.kinds[k].look.color()),
            fmt::format("{} {}, {}: {:.4g} to {:.4g}", chart.text.y_label, chart.rows[span.row], chart.kinds[k].name,
                        span.from, span.to));
    on.close();
  }
  return on.finish(chart.text, chart.kinds, "tabindex=\"0\"");
}

} // namespace mneme
