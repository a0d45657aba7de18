#include "tools/study/accuracy_plot.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {

line_chart task_accuracy_chart(chart_text text, std::span<const evaluation_record> evaluations) {
  line_chart chart{.text = std::move(text), .whole_x = true, .y_min = 0.0, .y_max = 100.0};
  if (evaluations.empty())
    return chart;
  const auto tasks = evaluations.back().accuracy_per_task.size();
  chart.curves.push_back({.series = {.name = "all seen", .look = {.is_total = true}}});
  for (std::size_t task = 0; task < tasks; ++task)
    chart.curves.push_back({.series = {.name = fmt::format("task {}", task + 1), .look = {.number = task}}});
  for (const auto& line : evaluations) {
    const double round = line.round.value + 1.0;
    chart.curves.front().points.emplace_back(round, line.accuracy);
    for (std::size_t task = 0; task < std::min(tasks, line.accuracy_per_task.size()); ++task)
      chart.curves[task + 1].points.emplace_back(round, line.accuracy_per_task[task]);
    if (line.end_of_task && line.task != evaluations.back().task)
      chart.marks.push_back({.x = round + 0.5});
  }
  return chart;
}

std::string accuracy_plot_svg(const std::string& title, std::span<const evaluation_record> evaluations) {
  return svg_of(
      task_accuracy_chart(
          {.id = "accuracy",
           .title = title,
           .description =
               "Accuracy on the test rows of each task, in percent, over rounds. Dashed lines mark the ends of tasks.",
           .x_label = "round",
           .y_label = "accuracy (%)"},
          evaluations),
      image_place::file);
}

} // namespace mneme
