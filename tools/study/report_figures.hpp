/// report_figures: groups of runs as the charts of a report.
#pragma once
#include "tools/study/group_curves.hpp"
namespace mneme {

/// A picture with its id, for a page (`in_page`) and as a file of its own (`alone`).
struct report_figure {
  chart_text text{};
  std::vector<chart_series> names{};  ///< Names of its series, where they are not the groups.
  std::optional<std::size_t> group{}; ///< It shows this group alone, and is hidden with it.
  std::string in_page{}, alone{};
};

struct report_drawing {
  std::vector<report_figure> figures{};
  std::vector<std::string> constants{}; ///< A sentence for each figure that would show a value that never changes.
};

/// Accuracy over rounds and over virtual time; of up to 12 groups the accuracy on each task, the accuracy matrix and
/// the last accuracy on each class; forgetting of each task, training loss, clients, traffic, staleness, and uploads in
/// a second. Of several seeds the mean and, as a band, least and most. What no run can show is left out.
[[nodiscard]] report_drawing figures_of(const std::vector<run_group>& groups);

} // namespace mneme
