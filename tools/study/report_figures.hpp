/// report_figures: charts of a report.
#pragma once
#include "tools/study/group_curves.hpp"
namespace mneme {

/// Chart with its id, for a page (`in_page`) and as a file (`alone`).
struct report_figure {
  chart_text text{};
  std::vector<chart_series> names{};  ///< Names of its series, if the series are not the groups.
  std::optional<std::size_t> group{}; ///< The group that the chart shows, and with which it is hidden; nullopt: several
                                      ///< groups.
  std::string in_page{}, alone{};
};

struct report_drawing {
  std::vector<report_figure> figures{};
  std::vector<std::string> constants{}; ///< One sentence for each chart that would show only constants.
};

/// Makes all charts of a report, with a band from minimum to maximum over seeds. Charts without data are omitted.
/// Per group, up to 12 groups: accuracy per task, accuracy matrix, and final accuracy per class.
/// For all groups: accuracy over rounds and over virtual time, forgetting per task, training loss, clients, traffic,
/// staleness, and uploads per second.
[[nodiscard]] report_drawing figures_of(const std::vector<run_group>& groups);

} // namespace mneme
