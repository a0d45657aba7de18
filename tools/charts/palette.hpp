/// palette: how the series of every figure are told apart, by colour, dash and marker; curves that coincide, too.
#pragma once
#include <array>
#include <cstdint>
#include <string>
namespace mneme {

/// Each has a contrast of 3 and more against white, #f5f5f5, #222222 and #161616. tools/plot.py reads them here.
inline constexpr std::array<const char*, 12> palette{"#3182ce", "#d9541e", "#2f9e57", "#a55fd0", "#b7791f", "#d53f8c",
                                                     "#1d93a3", "#7a7f87", "#6470e0", "#7d8b1f", "#a0674b", "#e0606a"};

/// The look of a series. Colours repeat after 12 series, dashes after 5 and markers after 7.
struct series_look {
  std::size_t number = 0;
  bool is_total = false; ///< The sum of the others: thick, in the colour of words.

  [[nodiscard]] std::string colour() const;
  /// The attribute `stroke-dasharray` with a blank before it; "" for a line without gaps.
  [[nodiscard]] std::string dash() const;
  [[nodiscard]] double stroke_width() const { return is_total ? 3.0 : 2.0; }
  /// A filled mark of about 8 units around a place, as an SVG element.
  [[nodiscard]] std::string marker(double x, double y) const;
};

/// A line with its dash and marker, for a legend in a page: an <svg> element of 30 by 12 units without a name.
[[nodiscard]] std::string swatch_svg(const series_look& look);

} // namespace mneme
