#include "tools/charts/palette.hpp"
#include <fmt/format.h>
namespace mneme {

std::string series_style::color() const { return is_total ? "currentColor" : palette[number % palette.size()]; }

std::string series_style::dash() const {
  static constexpr std::array<const char*, 5> dashes{"", "8 4", "2 4", "10 4 2 4", "5 3"};
  const std::string dash = is_total ? "" : dashes[number % dashes.size()];
  return dash.empty() ? "" : " stroke-dasharray=\"" + dash + "\"";
}

std::string series_style::marker(double x, double y) const {
  // Outlines around (0, 0): circle, square, triangle, diamond, inverted triangle, plus, cross.
  static constexpr std::array<const char*, 7> outlines{
      "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
      "M-3.5 -3.5h7v7h-7z",
      "M0 -4.5L4.5 3.5H-4.5z",
      "M0 -5L5 0L0 5L-5 0z",
      "M0 4.5L4.5 -3.5H-4.5z",
      "M-1.3 -4.5h2.6v3.2h3.2v2.6h-3.2v3.2h-2.6v-3.2h-3.2v-2.6h3.2z",
      "M-3.6 -4.6L0 -1L3.6 -4.6L4.6 -3.6L1 0L4.6 3.6L3.6 4.6L0 1L-3.6 4.6L-4.6 3.6L-1 0L-4.6 -3.6z"};
  return fmt::format("<path d=\"{}\" transform=\"translate({:.1f} {:.1f})\" fill=\"{}\"/>",
                     outlines[is_total ? 0 : number % outlines.size()], x, y, color());
}

std::string swatch_svg(const series_style& look) {
  return fmt::format(
      "<svg class=\"swatch\" viewBox=\"0 0 30 12\" aria-hidden=\"true\"><line x1=\"0\" y1=\"6\" x2=\"30\" "
      "y2=\"6\" stroke=\"{}\" stroke-width=\"{}\"{}/>{}</svg>",
      look.color(), look.stroke_width(), look.dash(), look.marker(15.0, 6.0));
}

} // namespace mneme
