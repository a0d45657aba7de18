/// svg_canvas: frame, axes and legend of all charts, as SVG.
#pragma once
#include "tools/charts/chart.hpp"
#include <string_view>
namespace mneme {

struct axis_span {
  double low = 0.0, high = 1.0;
  [[nodiscard]] double size() const { return high - low; }
  /// Returns the smallest span that contains this one and `value`.
  [[nodiscard]] axis_span with(double value) const;
};

/// Size of the drawing in SVG units, and position of the plot in it.
struct chart_frame {
  static constexpr double width = 560.0, height = 340.0;
  double left = 56.0, right = 542.0, top = 30.0, bottom = 292.0;
  [[nodiscard]] double plot_width() const { return right - left; }
  [[nodiscard]] double plot_height() const { return bottom - top; }
};

/// Formats a tick with at most four digits, such as "0.25", "12.5k" or "20M".
[[nodiscard]] std::string tick_text(double value);
/// Adds margins to a span, so that the result is not empty. Bounds that are given are kept.
[[nodiscard]] axis_span with_room(axis_span values, const std::optional<double>& low,
                                  const std::optional<double>& high);

class svg_canvas {
public:
  svg_canvas(image_place place, chart_frame frame, axis_span x, axis_span y)
      : place_(place), frame_(frame), x_(x), y_(y) {}
  [[nodiscard]] double x(double value) const {
    return frame_.left + frame_.plot_width() * (value - x_.low) / x_.size();
  }
  [[nodiscard]] double y(double value) const {
    return frame_.bottom - frame_.plot_height() * (value - y_.low) / y_.size();
  }
  [[nodiscard]] const chart_frame& frame() const { return frame_; }

  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void label(double x, double y, std::string_view text, std::string_view style);
  void shapes(std::string_view elements) { text_ += elements; }
  /// Writes an element with a tooltip. @param words text of the tooltip
  void add_with_tooltip(std::string_view tag, std::string_view attributes, std::string_view words);
  /// Draws ticks and grid of y, and the labels of both axes.
  void y_axis(const chart_text& text);
  void x_ticks(bool whole);
  /// Opens and closes the <g> element of a series.
  void open(const chart_series& series, std::string_view attributes);
  void close() { text_ += "</g>\n"; }
  /// Returns the <svg> element. In a file it has title, legend and note.
  /// @param attributes additional attributes of <svg> in a page
  [[nodiscard]] std::string finish(const chart_text& text, const std::vector<chart_series>& names,
                                   std::string_view attributes);
  [[nodiscard]] image_place place() const { return place_; }

private:
  image_place place_;
  chart_frame frame_;
  axis_span x_, y_;
  std::string text_;
};

} // namespace mneme
