#include "runtime/results/plot.hpp"
#include "runtime/results/escaped_markup.hpp"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>
namespace mneme {
namespace {

// The picture in SVG units; rounds count from 1, accuracies lie in 0 .. 100.
constexpr double left = 60.0, top = 48.0, width = 640.0, height = 340.0, legend_left = left + width + 20.0;
constexpr double picture_width = 860.0, picture_height = 440.0;
constexpr std::size_t legend_max = 18; // entries that fit beside the plot

/// Hues 137 degrees apart, so that neighbours differ however many tasks there are; as "#rrggbb", which every reader of
/// SVG knows.
std::string colour(std::size_t task) {
  constexpr double dark = 40.0, bright = 189.0;
  const double hue = static_cast<double>(task * 137 % 360) / 60.0;
  // one channel is bright and one dark while the third climbs from one to the other and back
  auto channel = [&](double centre) {
    const double away = std::abs(std::remainder(hue - centre, 6.0));
    return static_cast<int>(dark + (bright - dark) * std::clamp(2.0 - away, 0.0, 1.0));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(0.0), channel(2.0), channel(4.0));
}

class canvas {
public:
  explicit canvas(std::int64_t rounds) : rounds_(rounds) {}
  /// One round alone is drawn in the middle.
  [[nodiscard]] double x(double round) const {
    return rounds_ > 1 ? left + width * (round - 1.0) / static_cast<double>(rounds_ - 1) : left + width / 2.0;
  }
  [[nodiscard]] static double y(double accuracy) { return top + height * (1.0 - accuracy / 100.0); }

  void line(double x1, double y1, double x2, double y2, const char* style) {
    text_ += fmt::format("<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" {}/>\n", x1, y1, x2, y2, style);
  }
  void label(double x, double y, const std::string& text, const char* style) {
    text_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" {}>{}</text>\n", x, y, style, escaped_markup(text));
  }
  /// `points`: "x,y x,y ..."
  void curve(std::string points, const std::string& colour, double stroke) {
    if (std::count(points.begin(), points.end(), ',') == 1)
      points += points; // a line of no length is drawn as a dot, one point alone is not drawn
    text_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
                         "stroke-linecap=\"round\" stroke-linejoin=\"round\"/>\n",
                         points, colour, stroke);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

private:
  std::int64_t rounds_;
  std::string text_;
};

std::string point(const canvas& on, const evaluation_record& at, double accuracy) {
  return fmt::format("{:.2f},{:.2f} ", on.x(at.round.value + 1.0), canvas::y(accuracy));
}

/// About eight round numbers of `rounds`: steps of 1, 2 or 5 times a power of ten.
std::int64_t tick_step(std::int64_t rounds) {
  for (std::int64_t power = 1;; power *= 10)
    for (std::int64_t factor : {1, 2, 5})
      if (rounds / (factor * power) <= 8)
        return factor * power;
}

void draw_axes(canvas& on, std::int64_t rounds) {
  for (int accuracy = 0; accuracy <= 100; accuracy += 20) {
    on.line(left, canvas::y(accuracy), left + width, canvas::y(accuracy), "stroke=\"#ddd\"");
    on.label(left - 8.0, canvas::y(accuracy) + 4.0, std::to_string(accuracy), "text-anchor=\"end\"");
  }
  const auto step = tick_step(rounds);
  for (auto round = step; round <= rounds; round += step)
    on.label(on.x(static_cast<double>(round)), top + height + 18.0, std::to_string(round), "text-anchor=\"middle\"");
  on.line(left, top + height, left + width, top + height, "stroke=\"#333\"");
  on.line(left, top, left, top + height, "stroke=\"#333\"");
  on.label(left + width / 2.0, top + height + 40.0, "round", "text-anchor=\"middle\"");
  on.label(left - 40.0, top - 12.0, "accuracy in percent", "");
}

/// A dashed line where each task but the last ends.
void draw_boundaries(canvas& on, std::span<const evaluation_record> evaluations) {
  for (const auto& evaluation : evaluations)
    if (evaluation.end_of_task && evaluation.task != evaluations.back().task) {
      const double x = on.x(evaluation.round.value + 1.5); // between the task's last round and the next
      on.line(x, top, x, top + height, "stroke=\"#999\" stroke-dasharray=\"4 4\"");
    }
}

void draw_curves(canvas& on, std::span<const evaluation_record> evaluations) {
  const auto tasks = evaluations.back().accuracy_per_task.size();
  for (std::size_t task = 0; task < tasks; ++task) {
    std::string points;
    for (const auto& evaluation : evaluations)
      if (task < evaluation.accuracy_per_task.size())
        points += point(on, evaluation, evaluation.accuracy_per_task[task]);
    on.curve(points, colour(task), 1.5);
  }
  std::string points;
  for (const auto& evaluation : evaluations)
    points += point(on, evaluation, evaluation.accuracy);
  on.curve(points, "#111", 3.0);
}

void draw_legend(canvas& on, std::size_t tasks) {
  auto entry = [&](std::size_t place, const std::string& name, const std::string& colour, double stroke) {
    const double y = top + 10.0 + 20.0 * static_cast<double>(place);
    on.curve(fmt::format("{:.2f},{:.2f} {:.2f},{:.2f}", legend_left, y, legend_left + 24.0, y), colour, stroke);
    on.label(legend_left + 32.0, y + 4.0, name, "");
  };
  entry(0, "all seen", "#111", 3.0);
  const auto listed = std::min(tasks, legend_max - 2);
  for (std::size_t task = 0; task < listed; ++task)
    entry(task + 1, fmt::format("task {}", task + 1), colour(task), 1.5);
  if (listed < tasks)
    on.label(legend_left, top + 14.0 + 20.0 * static_cast<double>(listed + 1), fmt::format("... task {}", tasks), "");
}

} // namespace

std::string accuracy_plot_svg(const std::string& title, std::span<const evaluation_record> evaluations) {
  const std::int64_t rounds = evaluations.empty() ? 1 : std::int64_t{evaluations.back().round.value} + 1;
  canvas on(rounds);
  on.label(left - 40.0, 20.0, title, "font-size=\"15\" font-weight=\"bold\"");
  draw_axes(on, rounds);
  if (!evaluations.empty()) {
    draw_boundaries(on, evaluations);
    draw_curves(on, evaluations);
    draw_legend(on, evaluations.back().accuracy_per_task.size());
  }
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
                     "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" "
                     "fill=\"white\"/>\n",
                     picture_width, picture_height) +
         on.take() + "</svg>\n";
}

} // namespace mneme
