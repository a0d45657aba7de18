/// activity_figures: charts of clients' activities over virtual time.
#pragma once
#include "tools/charts/chart.hpp"
#include "tools/study/group_curves.hpp"
namespace mneme {

/// Gantt chart of the round of median length: download, computing, upload, waiting and lateness of each client. Shows
/// at most 60 clients. If there are more, it shows every n-th one, and the chart's note gives n. @param id id of the
/// chart
[[nodiscard]] std::optional<span_chart> gantt_figure(const run_activity& activity, const std::string& id,
                                                     const std::string& title);

/// Number of clients in each activity over virtual time.
[[nodiscard]] std::optional<line_chart> utilization_figure(const run_activity& activity, const std::string& id,
                                                           const std::string& title);

/// Virtual time until target accuracies were first reached. The time is divided into download, computing, upload and
/// waiting of the slowest clients. Synchronous runs only.
[[nodiscard]] std::optional<bar_chart> round_time_chart(const reported_run& run, const std::string& id,
                                                        const std::string& title);

} // namespace mneme
