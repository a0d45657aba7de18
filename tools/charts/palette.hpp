/// palette: colors, dashes and markers that distinguish series, even coinciding curves.
#pragma once
#include <array>
#include <cstdint>
#include <string>
namespace mneme {

/// The contrast of each color to white, #f5f5f5, #222222 and #161616 is at least 3. tools/plot.py parses this line.
inline constexpr std::array<const char*, 12> palette{"#3182ce", "#d9541e", "#2f9e57", "#a55fd0", "#b7791f", "#d53f8c",
                                                     "#1d93a3", "#7a7f87", "#6470e0", "#7d8b1f", "#a0674b", "#e0606a"};

/// Style of a series. Colors repeat after 12 series, dashes after 5, markers after 7.
struct series_style {
  std::size_t number = 0;
  bool is_total = false; ///< true: total of the other series, drawn thick in text color.

  [[nodiscard]] std::string color() const;
  /// Attribute `stroke-dasharray` with a leading blank; empty for a solid line.
  [[nodiscard]] std::string dash() const;
  [[nodiscard]] double stroke_width() const { return is_total ? 3.0 : 2.0; }
  /// SVG element of a filled marker of about 8 units at (x, y).
  [[nodiscard]] std::string marker(double x, double y) const;
};

/// Returns a line with dash and marker for a page's legend: an unlabeled <svg> element of 30 by 12 units.
[[nodiscard]] std::string swatch_svg(const series_style& look);

} // namespace mneme
