/// chart: line charts, bar charts, heat maps and span charts as SVG, for a page or as a file.
#pragma once
#include "tools/charts/palette.hpp"
#include <optional>
#include <utility>
#include <vector>
namespace mneme {

/// Texts of a chart: `id`, which is also its file name, labels, and a description for screen readers.
struct chart_text {
  std::string id{}, title{}, description{}, x_label{}, y_label{};
  std::string note{}; ///< A sentence below the names, such as the meaning of bands; "": none.
};

/// Curve or set of bars. A page hides all series of a group together; series without a group stay visible.
struct chart_series {
  std::string name{};
  series_style look{};
  std::optional<std::size_t> group{};
};

struct chart_curve {
  chart_series series{};
  std::vector<std::pair<double, double>> points{}; ///< Sorted by x.
  std::vector<std::array<double, 3>> band{};       ///< x, low, high for each point; empty: no band.
  bool stepped = false;                            ///< true: a value holds until the next point.
};

/// A vertical line, for example at the end of a task.
struct chart_mark {
  double x = 0.0;
  std::optional<series_style> look{}; ///< nullopt: the line belongs to all curves.
  std::optional<std::size_t> group{}; ///< The mark is hidden with this group.
};

struct line_chart {
  chart_text text{};
  std::vector<chart_curve> curves{};
  bool whole_x = false; ///< true: x has integer values only.
  std::vector<chart_mark> marks{};
  std::optional<double> y_min{}, y_max{}; ///< Range of the y axis; nullopt: taken from the data.
};

/// Mean value, with minimum and maximum over several runs.
struct chart_bar {
  double value = 0.0, low = 0.0, high = 0.0;
};

/// Bars of one series, one per category; nullopt if a value is missing.
struct chart_bars {
  chart_series series{};
  std::vector<std::optional<chart_bar>> bars{};
};

struct bar_chart {
  chart_text text{};
  std::vector<std::string> categories{};
  std::vector<chart_bars> kinds{};
};

/// Cells colored by a scale from `low` to `high`, with a color bar.
struct heat_map {
  chart_text text{};
  std::vector<std::string> rows{}, columns{};
  std::vector<std::string> column_words{};                  ///< Column texts in tooltips; empty: same as `columns`.
  std::vector<std::vector<std::optional<double>>> values{}; ///< [row][column]; nullopt: empty cell.
  double low = 0.0, high = 100.0;
};

/// Intervals of x in rows, as in a Gantt chart.
struct span_chart {
  struct span {
    std::size_t row = 0, kind = 0;
    double from = 0.0, to = 0.0;
  };
  chart_text text{};
  std::vector<std::string> rows{};
  std::vector<chart_series> kinds{};
  std::vector<span> spans{};
  double from = 0.0, to = 1.0; ///< Range of the x axis.
};

enum class image_place : std::uint8_t {
  page, ///< Part of a page, which has title and legend and reads values from `data-` attributes.
  file, ///< Stand-alone file, dark on white, with title and legend.
};

/// Returns an <svg> element with title and description. In a page, lines and text have the color of the surrounding
/// text. Equal charts give equal text. A curve has at most 1,000 points; a longer one is reduced to the minimum and
/// maximum of each of up to 500 intervals. A file's legend has at most 18 series.
[[nodiscard]] std::string svg_of(const line_chart& chart, image_place place);
[[nodiscard]] std::string svg_of(const bar_chart& chart, image_place place);
[[nodiscard]] std::string svg_of(const heat_map& chart, image_place place);
[[nodiscard]] std::string svg_of(const span_chart& chart, image_place place);

} // namespace mneme
