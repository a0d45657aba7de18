#include "tools/charts/svg_canvas.hpp"
#include "tools/charts/escape_markup.hpp"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
namespace mneme {
namespace {

constexpr std::size_t names_max = 18;
constexpr double title_height = 30.0, name_height = 18.0;

/// Distance between ticks: 1, 2 or 5 times a power of ten, so that there are at most `steps` ticks.
double tick_step(double size, double steps) {
  const double rough = size / steps;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough)
      return factor * power;
  return 10.0 * power;
}

/// Draws the names of series and the note below the chart, which has a height of `from` units.
std::string names_text(const chart_frame& frame, const chart_text& text, const std::vector<chart_series>& names,
                       double from) {
  std::string lines;
  double y = from;
  const auto write = [&](double x, const std::string& words) {
    lines += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" dy=\"0.35em\" fill=\"currentColor\">{}</text>\n", x, y,
                         escape_markup(words));
    y += name_height;
  };
  const auto shown = names.size() > names_max ? names_max - 1 : names.size();
  for (std::size_t k = 0; k < shown; ++k) {
    const auto& look = names[k].look;
    lines += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
                         "stroke-width=\"{}\"{}/>{}",
                         frame.left, y, frame.left + 30.0, y, look.color(), look.stroke_width(), look.dash(),
                         look.marker(frame.left + 15.0, y));
    write(frame.left + 38.0, names[k].name);
  }
  if (shown < names.size())
    write(frame.left + 38.0, "... " + names.back().name);
  if (!text.note.empty())
    write(frame.left, text.note);
  return lines;
}

} // namespace

axis_span axis_span::with(double value) const { return {std::min(low, value), std::max(high, value)}; }

std::string tick_text(double value) {
  const double size = std::abs(value);
  for (const auto& [scale, unit] : {std::pair(1e12, "T"), {1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
    if (size >= scale * 10.0 || (size >= scale && scale > 1e3))
      return fmt::format("{:.4g}{}", value / scale, unit);
  return fmt::format("{:.4g}", size < 1e-12 ? 0.0 : value);
}

axis_span with_room(axis_span values, const std::optional<double>& low, const std::optional<double>& high) {
  const double room = values.size() > 0.0 ? 0.04 * values.size() : std::max(1.0, std::abs(values.low) * 0.1);
  axis_span roomy{low.value_or(values.low - room), high.value_or(values.high + room)};
  if (!(roomy.size() > 0.0))
    roomy.high = roomy.low + 1.0;
  return roomy;
}

void svg_canvas::line(double x1, double y1, double x2, double y2, std::string_view style) {
  text_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
}

void svg_canvas::label(double x, double y, std::string_view text, std::string_view style) {
  text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"currentColor\" {}>{}</text>\n", x, y, style,
                       escape_markup(std::string(text)));
}

void svg_canvas::add_with_tooltip(std::string_view tag, std::string_view attributes, std::string_view words) {
  const auto said = escape_markup(std::string(words));
  text_ += place_ == image_place::page ? fmt::format("<{} {} data-tooltip=\"{}\"/>\n", tag, attributes, said)
                                       : fmt::format("<{} {}><title>{}</title></{}>\n", tag, attributes, said, tag);
}

void svg_canvas::y_axis(const chart_text& text) {
  const double step = tick_step(y_.size(), 6.0);
  for (double tick = std::ceil(y_.low / step) * step; tick <= y_.high + 1e-9 * step; tick += step) {
    line(frame_.left, y(tick), frame_.right, y(tick), "stroke=\"currentColor\" stroke-opacity=\"0.15\"");
    label(frame_.left - 7.0, y(tick), tick_text(tick), "dy=\"0.35em\" text-anchor=\"end\"");
  }
  constexpr auto style = "stroke=\"currentColor\" stroke-opacity=\"0.7\"";
  line(frame_.left, frame_.bottom, frame_.right, frame_.bottom, style);
  line(frame_.left, frame_.top, frame_.left, frame_.bottom, style);
  label(4.0, 17.0, text.y_label, "");
  label(frame_.left + frame_.plot_width() / 2.0, chart_frame::height - 7.0, text.x_label, "text-anchor=\"middle\"");
}

void svg_canvas::x_ticks(bool whole) {
  const double step = std::max(tick_step(x_.size(), 7.0), whole ? 1.0 : 0.0);
  for (double tick = std::ceil(x_.low / step) * step; tick <= x_.high + 1e-9 * step; tick += step)
    label(x(tick), frame_.bottom + 5.0, tick_text(tick), "dy=\"1em\" text-anchor=\"middle\"");
}

void svg_canvas::open(const chart_series& series, std::string_view attributes) {
  text_ += "<g";
  if (series.group)
    text_ += fmt::format(" data-group=\"{}\"", *series.group);
  if (place_ == image_place::file)
    text_ += "><title>" + escape_markup(series.name) + "</title>";
  else
    text_ += fmt::format(" data-name=\"{}\" data-color=\"{}\"{}>", escape_markup(series.name), series.look.color(),
                         attributes);
}

std::string svg_canvas::finish(const chart_text& text, const std::vector<chart_series>& names,
                               std::string_view attributes) {
  const auto id = escape_markup(text.id), title = escape_markup(text.title);
  const auto head = fmt::format("role=\"img\" aria-labelledby=\"{0}-title {0}-description\" font-family=\"sans-serif\" "
                                "font-size=\"12\"",
                                id);
  const auto words = fmt::format("<title id=\"{0}-title\">{1}</title>\n<desc id=\"{0}-description\">{2}</desc>\n", id,
                                 title, escape_markup(text.description));
  if (place_ == image_place::page)
    return fmt::format("<svg viewBox=\"0 0 {} {}\" {} {}>\n{}{}</svg>\n", chart_frame::width, chart_frame::height, head,
                       attributes, words, std::exchange(text_, {}));
  const auto lines = std::min(names.size(), names_max) + (text.note.empty() ? 0 : 1);
  const double below = name_height * static_cast<double>(lines) + (lines > 0 ? 8.0 : 0.0);
  const double height = title_height + chart_frame::height + below;
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
                     "color=\"#222222\" {2}>\n{3}<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
                     "<text x=\"4\" y=\"20\" fill=\"currentColor\" font-size=\"15\" font-weight=\"bold\">{4}</text>\n"
                     "<g transform=\"translate(0 {5})\">\n{6}{7}</g>\n</svg>\n",
                     chart_frame::width, height, head, words, title, title_height, std::exchange(text_, {}),
                     names_text(frame_, text, names, chart_frame::height + 10.0));
}

} // namespace mneme
