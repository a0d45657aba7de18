/// accuracy_plot: accuracy over the rounds of a run as SVG.
#pragma once
#include "runtime/results/metrics.hpp"
#include "tools/charts/chart.hpp"
#include <span>
namespace mneme {

/// One curve per task, and one for all tasks seen, with a vertical line at the end of each task.
/// @pre `evaluations` are in the order of their rounds
[[nodiscard]] line_chart task_accuracy_chart(chart_text text, std::span<const evaluation_record> evaluations);
/// task_accuracy_chart() as the text of accuracy.svg. Equal evaluations give equal text.
[[nodiscard]] std::string accuracy_plot_svg(const std::string& title, std::span<const evaluation_record> evaluations);

} // namespace mneme
