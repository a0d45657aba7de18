#include "runtime/study/chart.hpp"
#include "runtime/results/escaped_markup.hpp"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
namespace mneme {
namespace {

// The picture in SVG units.
constexpr double width = 680.0, height = 380.0, left = 70.0, right = 20.0, top = 20.0, bottom = 50.0;
constexpr double plot_width = width - left - right, plot_height = height - top - bottom;

struct span {
  double low = 0.0, high = 1.0;
  [[nodiscard]] double size() const { return high - low; }
};

/// Steps of 1, 2 or 5 times a power of ten, at most `steps` of them.
double tick_step(double size, double steps) {
  const double rough = size / steps;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough)
      return factor * power;
  return 10.0 * power;
}

/// 0.25, 1.5k, 20M: four digits at most.
std::string tick_text(double value) {
  const double size = std::abs(value);
  for (const auto& [scale, unit] : {std::pair(1e12, "T"), {1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
    if (size >= scale * 10.0 || (size >= scale && scale > 1e3))
      return fmt::format("{:.4g}{}", value / scale, unit);
  return fmt::format("{:.4g}", size < 1e-12 ? 0.0 : value);
}

/// A range with some room that is not empty.
span with_room(span values, const std::optional<double>& low, const std::optional<double>& high) {
  const double room = values.size() > 0.0 ? 0.04 * values.size() : std::max(1.0, std::abs(values.low) * 0.1);
  span made{low.value_or(values.low - room), high.value_or(values.high + room)};
  if (!(made.size() > 0.0))
    made.high = made.low + 1.0;
  return made;
}

/// A curve of more points than a picture has room for, as the lowest and the highest of each stretch; its band from the
/// least to the most of a stretch.
chart_curve thinned(chart_curve curve) {
  constexpr std::size_t points_max = 1000;
  if (curve.points.size() <= points_max)
    return curve;
  const auto stretch = static_cast<std::ptrdiff_t>((2 * curve.points.size() + points_max - 1) / points_max);
  std::vector<std::pair<double, double>> points;
  for (auto from = curve.points.begin(); from != curve.points.end();) {
    const auto to = from + std::min(stretch, curve.points.end() - from);
    const auto [low, high] =
        std::minmax_element(from, to, [](const auto& a, const auto& b) { return a.second < b.second; });
    points.push_back(std::min(*low, *high)); // by x
    if (low != high)
      points.push_back(std::max(*low, *high));
    from = to;
  }
  std::vector<std::array<double, 3>> band;
  for (auto from = curve.band.begin(); from != curve.band.end();) {
    const auto to = from + std::min(stretch, curve.band.end() - from);
    band.push_back(*from);
    for (; from != to; ++from) {
      band.back()[1] = std::min(band.back()[1], (*from)[1]);
      band.back()[2] = std::max(band.back()[2], (*from)[2]);
    }
  }
  curve.points = std::move(points);
  curve.band = std::move(band);
  return curve;
}

class svg_canvas {
public:
  svg_canvas(span x, span y) : x_(x), y_(y) {}
  [[nodiscard]] double x(double value) const { return left + plot_width * (value - x_.low) / x_.size(); }
  [[nodiscard]] double y(double value) const { return top + plot_height * (1.0 - (value - y_.low) / y_.size()); }

  void line(double x1, double y1, double x2, double y2, const char* style) {
    text_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"currentColor\" {}/>\n",
                         x1, y1, x2, y2, style);
  }
  void label(double x, double y, const std::string& text, const char* style) {
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"currentColor\" {}>{}</text>\n", x, y, style,
                         escaped_markup(text));
  }
  void axes(const chart_text& text, bool whole_x) {
    const double x_step = std::max(tick_step(x_.size(), 8.0), whole_x ? 1.0 : 0.0), y_step = tick_step(y_.size(), 6.0);
    for (double tick = std::ceil(y_.low / y_step) * y_step; tick <= y_.high + 1e-9 * y_step; tick += y_step) {
      line(left, y(tick), width - right, y(tick), "stroke-opacity=\"0.15\"");
      label(left - 8.0, y(tick) + 4.0, tick_text(tick), "text-anchor=\"end\"");
    }
    for (double tick = std::ceil(x_.low / x_step) * x_step; tick <= x_.high + 1e-9 * x_step; tick += x_step)
      label(x(tick), height - bottom + 18.0, tick_text(tick), "text-anchor=\"middle\"");
    line(left, height - bottom, width - right, height - bottom, "stroke-opacity=\"0.7\"");
    line(left, top, left, height - bottom, "stroke-opacity=\"0.7\"");
    label(left + plot_width / 2.0, height - 10.0, text.x_label, "text-anchor=\"middle\"");
    label(14.0, top + plot_height / 2.0, text.y_label,
          fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 14 {:.1f})\"", top + plot_height / 2.0).c_str());
  }
  void curve(const chart_curve& drawn) {
    const auto colour = group_colour(drawn.group);
    std::string shapes;
    if (drawn.band.size() > 1) {
      std::string corners;
      for (const auto& [at, low, high] : drawn.band)
        corners += fmt::format("{:.1f},{:.1f} ", x(at), y(high));
      for (auto edge = drawn.band.rbegin(); edge != drawn.band.rend(); ++edge)
        corners += fmt::format("{:.1f},{:.1f} ", x((*edge)[0]), y((*edge)[1]));
      shapes += fmt::format("<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.2\"/>", corners, colour);
    }
    std::string points;
    for (std::size_t i = 0; i < drawn.points.size(); ++i) {
      const auto& [at, value] = drawn.points[i];
      if (drawn.stepped && i > 0)
        points += fmt::format("{:.1f},{:.1f} ", x(at), y(drawn.points[i - 1].second));
      points += fmt::format("{:.1f},{:.1f} ", x(at), y(value));
    }
    if (drawn.points.size() == 1)
      points += points; // a line of no length is drawn as a dot, one point alone is not drawn
    shapes += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" "
                          "stroke-linecap=\"round\" stroke-linejoin=\"round\"{}/>",
                          points, colour, drawn.dashed ? " stroke-dasharray=\"6 4\"" : "");
    text_ +=
        fmt::format("<g data-group=\"{}\"><title>{}</title>{}</g>\n", drawn.group, escaped_markup(drawn.name), shapes);
  }
  void cell(double at_x, double at_y, double cell_width, double cell_height, double share, const std::string& name) {
    // From white over blue to dark blue, whatever the page's colours: cells carry their own.
    const auto channel = [&](double from, double to) {
      return static_cast<int>(std::lround(from + (to - from) * share));
    };
    text_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                         "fill=\"#{:02x}{:02x}{:02x}\"><title>{}</title></rect>\n",
                         at_x, at_y, cell_width, cell_height, channel(247, 8), channel(251, 48), channel(255, 107),
                         escaped_markup(name));
  }
  void cell_text(double x, double y, const std::string& text, bool on_dark) {
    text_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{}\">{}</text>\n",
                    x, y, on_dark ? "#ffffff" : "#000000", text);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

private:
  span x_, y_;
  std::string text_;
};

std::string wrapped(const chart_text& text, const std::string& shapes, bool alone, double picture_height) {
  const auto id = escaped_markup(text.id);
  return fmt::format("<svg {}viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-labelledby=\"{}-title {}-description\" "
                     "font-family=\"sans-serif\" font-size=\"12\"{}>\n<title id=\"{}-title\">{}</title>\n"
                     "<desc id=\"{}-description\">{}</desc>\n{}{}</svg>\n",
                     alone ? "xmlns=\"http://www.w3.org/2000/svg\" " : "", width, picture_height, id, id,
                     alone ? fmt::format(" width=\"{}\" height=\"{:.0f}\" color=\"#222222\"", width, picture_height)
                           : "",
                     id, escaped_markup(text.title), id, escaped_markup(text.description),
                     alone ? "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" : "", shapes);
}

/// The names of groups below a picture that stands alone; a page has a legend of its own.
void draw_names(svg_canvas& on, const std::vector<chart_curve>& curves, double from) {
  double y = from;
  for (const auto& curve : curves) {
    on.label(left + 30.0, y + 4.0, curve.name, "");
    on.line(left, y, left + 24.0, y,
            fmt::format("style=\"stroke:{}\" stroke-width=\"3\"{}", group_colour(curve.group),
                        curve.dashed ? " stroke-dasharray=\"6 4\"" : "")
                .c_str());
    y += 18.0;
  }
}

} // namespace

std::string group_colour(std::size_t group) {
  // A contrast of 3 and more against white and against #161616.
  static constexpr std::array<const char*, 12> colours{"#3182ce", "#d9541e", "#2f9e57", "#a55fd0",
                                                       "#b7791f", "#d53f8c", "#1d93a3", "#7a7f87",
                                                       "#6470e0", "#7d8b1f", "#a0674b", "#e0606a"};
  return colours[group % colours.size()];
}

std::string svg_of(const line_chart& chart, bool alone) {
  std::optional<span> x, y;
  const auto widen = [](std::optional<span>& into, double value) {
    into = into ? span{std::min(into->low, value), std::max(into->high, value)} : span{value, value};
  };
  for (const auto& curve : chart.curves) {
    for (const auto& [at, value] : curve.points) {
      widen(x, at);
      widen(y, value);
    }
    for (const auto& [at, low, high] : curve.band) {
      widen(y, low);
      widen(y, high);
    }
  }
  auto across = x.value_or(span{});
  if (!(across.size() > 0.0))
    across = {across.low - 0.5, across.low + 0.5};
  svg_canvas on(across, with_room(y.value_or(span{}), chart.y_min, chart.y_max));
  on.axes(chart.text, chart.whole_x);
  for (const double mark : chart.marks)
    if (mark >= across.low && mark <= across.high)
      on.line(on.x(mark), top, on.x(mark), height - bottom, "stroke-opacity=\"0.4\" stroke-dasharray=\"4 4\"");
  for (const auto& curve : chart.curves)
    on.curve(thinned(curve));
  if (alone)
    draw_names(on, chart.curves, height + 10.0);
  const double names = alone ? 18.0 * static_cast<double>(chart.curves.size()) + 10.0 : 0.0;
  return wrapped(chart.text, on.take(), alone, height + names);
}

std::string svg_of(const heat_map& chart, bool alone) {
  constexpr std::size_t written_max = 14; // columns in which a number fits
  constexpr double dark_from = 0.65;      // either colour of words has a contrast of 4.5 there, and more elsewhere
  svg_canvas on({0.0, 1.0}, {0.0, 1.0});
  const double cell_width = plot_width / static_cast<double>(std::max<std::size_t>(1, chart.columns.size()));
  const double cell_height = plot_height / static_cast<double>(std::max<std::size_t>(1, chart.rows.size()));
  const auto every = [](std::size_t count) { return std::max<std::size_t>(1, (count + 19) / 20); };
  for (std::size_t c = 0; c < chart.columns.size(); c += every(chart.columns.size()))
    on.label(left + cell_width * (static_cast<double>(c) + 0.5), height - bottom + 18.0, chart.columns[c],
             "text-anchor=\"middle\"");
  for (std::size_t r = 0; r < chart.rows.size(); ++r) {
    const double y = top + cell_height * static_cast<double>(r);
    if (r % every(chart.rows.size()) == 0)
      on.label(left - 8.0, y + cell_height / 2.0 + 4.0, chart.rows[r], "text-anchor=\"end\"");
    for (std::size_t c = 0; c < chart.values[r].size(); ++c) {
      const auto& value = chart.values[r][c];
      if (!value)
        continue;
      const double x = left + cell_width * static_cast<double>(c);
      const double share = std::clamp((*value - chart.low) / (chart.high - chart.low), 0.0, 1.0);
      on.cell(x, y, cell_width, cell_height, share,
              fmt::format("{} {}, {} {}: {:.2f}", chart.text.y_label, chart.rows[r], chart.text.x_label,
                          chart.columns[c], *value));
      if (chart.columns.size() <= written_max)
        on.cell_text(x + cell_width / 2.0, y + cell_height / 2.0 + 4.0, fmt::format("{:.1f}", *value),
                     share > dark_from);
    }
  }
  on.label(left + plot_width / 2.0, height - 10.0, chart.text.x_label, "text-anchor=\"middle\"");
  on.label(14.0, top + plot_height / 2.0, chart.text.y_label,
           fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 14 {:.1f})\"", top + plot_height / 2.0).c_str());
  return wrapped(chart.text, on.take(), alone, height);
}

} // namespace mneme
