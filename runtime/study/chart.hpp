/// chart: curves over an axis, or a heat map, as a picture in SVG that stands alone or in a page.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
namespace mneme {

/// What every chart says of itself: `id` in a page and as a file's name, and words for those who do not see it.
struct chart_text {
  std::string id{}, title{}, description{}, x_label{}, y_label{};
};

struct chart_curve {
  std::string name{};
  std::size_t group = 0;                           ///< Curves of one group have one colour, and are hidden together.
  std::vector<std::pair<double, double>> points{}; ///< By x.
  std::vector<std::array<double, 3>> band{};       ///< x, low, high; empty: no band.
  bool dashed = false;
  bool stepped = false; ///< A value holds until the next.
};

struct line_chart {
  chart_text text{};
  std::vector<chart_curve> curves{};
  bool whole_x = false;                   ///< x counts things: there is nothing between 1 and 2.
  std::vector<double> marks{};            ///< Vertical lines, as where tasks end.
  std::optional<double> y_min{}, y_max{}; ///< Null: what the curves need.
};

struct heat_map {
  chart_text text{};
  std::vector<std::string> rows{}, columns{};
  std::vector<std::vector<std::optional<double>>> values{}; ///< [row][column]; null cells stay empty.
  double low = 0.0, high = 100.0;
};

/// The colour of a group: dark enough for a white page, bright enough for a black one.
[[nodiscard]] std::string group_colour(std::size_t group);

/// An <svg> element with a title and a description. Lines and words have the colour of the text around it; alone, as a
/// file, they are dark on white. Equal charts give equal text. A curve is drawn with at most 1,000 points: of a longer
/// one, the lowest and the highest of each of up to 500 stretches.
[[nodiscard]] std::string svg_of(const line_chart& chart, bool alone);
[[nodiscard]] std::string svg_of(const heat_map& chart, bool alone);

} // namespace mneme
