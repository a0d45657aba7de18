/// report_figures: charts of a report.
#pragma once
#include "tools/study/group_curves.hpp"
namespace mneme {

/// A chart with its id, for use in a page (`in_page`) and as a file (`alone`).
struct report_figure {
  chart_text text{};
  std::vector<chart_series> names{};  ///< Names of its series, if they are not the groups.
  std::optional<std::size_t> group{}; ///< The only group it shows, if any; hidden with the group.
  std::string in_page{}, alone{};
};

struct report_drawing {
  std::vector<report_figure> figures{};
  std::vector<std::string> constants{}; ///< A sentence for each chart that would show a constant.
};

/// Makes the charts: accuracy over rounds and over virtual time; for up to 12 groups accuracy per task, accuracy matrix
/// and final accuracy per class; forgetting per task, training loss, clients, traffic, staleness and uploads per
/// second. Several seeds are shown as mean with a band from minimum to maximum. Charts without data are omitted.
[[nodiscard]] report_drawing figures_of(const std::vector<run_group>& groups);

} // namespace mneme
