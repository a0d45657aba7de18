/// svg_canvas: the frame, axes and names that all charts share, drawn as SVG.
#pragma once
#include "tools/charts/chart.hpp"
#include <string_view>
namespace mneme {

struct axis_span {
  double low = 0.0, high = 1.0;
  [[nodiscard]] double size() const { return high - low; }
  /// The least span that holds this one and `value`.
  [[nodiscard]] axis_span with(double value) const;
};

/// The picture in SVG units, and the plot within it.
struct chart_frame {
  static constexpr double width = 560.0, height = 340.0;
  double left = 56.0, right = 542.0, top = 30.0, bottom = 292.0;
  [[nodiscard]] double plot_width() const { return right - left; }
  [[nodiscard]] double plot_height() const { return bottom - top; }
};

/// "0.25", "12.5k", "20M": four digits at most.
[[nodiscard]] std::string tick_text(double value);
/// A span with some room around the values that is not empty; a bound that is given stays.
[[nodiscard]] axis_span with_room(axis_span values, const std::optional<double>& low,
                                  const std::optional<double>& high);

class svg_canvas {
public:
  svg_canvas(picture_place place, chart_frame frame, axis_span x, axis_span y)
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
  /// What a reader is told of `element` under the pointer; the element's end tag is "</TAG>".
  void told(std::string_view tag, std::string_view attributes, std::string_view words);
  /// Ticks and lines of y, and the words of both axes.
  void y_axis(const chart_text& text);
  void x_ticks(bool whole);
  /// Opens and closes a <g> of a series.
  void open(const chart_series& series, std::string_view attributes);
  void close() { text_ += "</g>\n"; }
  /// The element. In a file with the title above it, the series' names and the note below.
  /// @param attributes more of the <svg> in a page
  [[nodiscard]] std::string finish(const chart_text& text, const std::vector<chart_series>& names,
                                   std::string_view attributes);
  [[nodiscard]] picture_place place() const { return place_; }

private:
  picture_place place_;
  chart_frame frame_;
  axis_span x_, y_;
  std::string text_;
};

} // namespace mneme
