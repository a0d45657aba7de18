/// chart: curves over an axis, bars over categories, or a heat map, as a picture in SVG for a page or as a file.
#pragma once
#include "tools/charts/palette.hpp"
#include <optional>
#include <utility>
#include <vector>
namespace mneme {

/// What every chart says of itself: `id` in a page and as a file's name, and words for those who do not see it.
struct chart_text {
  std::string id{}, title{}, description{}, x_label{}, y_label{};
  std::string note{}; ///< A sentence below the names, as what bands are; "": none.
};

/// A curve or a kind of bars. Those of one group are hidden together in a page; those without a group stay.
struct chart_series {
  std::string name{};
  series_look look{};
  std::optional<std::size_t> group{};
};

struct chart_curve {
  chart_series series{};
  std::vector<std::pair<double, double>> points{}; ///< By x.
  std::vector<std::array<double, 3>> band{};       ///< x, low, high for each point; empty: no band.
  bool stepped = false;                            ///< A value holds until the next.
};

/// A vertical line, as where a task ends.
struct chart_mark {
  double x = 0.0;
  std::optional<series_look> look{};  ///< Null: it holds for all curves.
  std::optional<std::size_t> group{}; ///< Hidden with it.
};

struct line_chart {
  chart_text text{};
  std::vector<chart_curve> curves{};
  bool whole_x = false; ///< x counts things: there is nothing between 1 and 2.
  std::vector<chart_mark> marks{};
  std::optional<double> y_min{}, y_max{}; ///< Null: what the curves need.
};

/// A value and, of several runs, the least and the most of them.
struct chart_bar {
  double value = 0.0, low = 0.0, high = 0.0;
};

/// Bars of one kind: one per category, null where there is none.
struct chart_bars {
  chart_series series{};
  std::vector<std::optional<chart_bar>> bars{};
};

struct bar_chart {
  chart_text text{};
  std::vector<std::string> categories{};
  std::vector<chart_bars> kinds{};
};

/// Cells on a scale from `low` to `high`, which a bar of colours beside them shows.
struct heat_map {
  chart_text text{};
  std::vector<std::string> rows{}, columns{};
  std::vector<std::string> column_words{};                  ///< What a reader is told of each; empty: `columns`.
  std::vector<std::vector<std::optional<double>>> values{}; ///< [row][column]; null cells stay empty.
  double low = 0.0, high = 100.0;
};

/// Stretches of x in rows, as of a Gantt chart.
struct span_chart {
  struct span {
    std::size_t row = 0, kind = 0;
    double from = 0.0, to = 0.0;
  };
  chart_text text{};
  std::vector<std::string> rows{};
  std::vector<chart_series> kinds{};
  std::vector<span> spans{};
  double from = 0.0, to = 1.0; ///< The axis of x.
};

enum class picture_place : std::uint8_t {
  page, ///< Within a page, which names title and series itself and reads the values from `data-` attributes.
  file, ///< Alone, dark on white, with title and names.
};

/// An <svg> element with a title and a description. In a page, lines and words have the colour of the text around it.
/// Equal charts give equal text. A curve is drawn with at most 1,000 points: of a longer one, the lowest and the
/// highest of each of up to 500 stretches. At most 18 series are named in a file.
[[nodiscard]] std::string svg_of(const line_chart& chart, picture_place place);
[[nodiscard]] std::string svg_of(const bar_chart& chart, picture_place place);
[[nodiscard]] std::string svg_of(const heat_map& chart, picture_place place);
[[nodiscard]] std::string svg_of(const span_chart& chart, picture_place place);

} // namespace mneme
