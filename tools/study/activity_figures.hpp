/// activity_figures: what clients of a run were at, as charts.
#pragma once
#include "tools/charts/chart.hpp"
#include "tools/study/group_curves.hpp"
namespace mneme {

/// The median round as a Gantt chart: who downloaded, computed, uploaded, waited and was late. At most 60 clients have
/// a row; of more, every so-manieth does, which the chart's note says. @param id of the chart
[[nodiscard]] std::optional<span_chart> gantt_figure(const run_activity& activity, const std::string& id,
                                                     const std::string& title);

/// How many clients were at each thing over virtual time.
[[nodiscard]] std::optional<line_chart> utilisation_figure(const run_activity& activity, const std::string& id,
                                                           const std::string& title);

/// Virtual time until accuracies were reached first, and how much of it downloads, computing, uploads and other waiting
/// took of the clients that were waited for: synchronous runs.
[[nodiscard]] std::optional<bar_chart> time_parts_figure(const reported_run& run, const std::string& id,
                                                         const std::string& title);

} // namespace mneme
