/// client_figures: charts of clients' own models and of the classes that clients hold.
#pragma once
#include "tools/study/group_curves.hpp"
namespace mneme {

/// Charts of evaluation.personal: means over clients by round, and deciles over clients at the last evaluation. If no
/// run has such results, the charts have no curves.
[[nodiscard]] std::vector<line_chart> client_figures(const std::vector<run_group>& groups);

/// Training rows of each class that clients hold, in the first run with client_classes.csv; at most 100 clients.
/// @param suffix end of the title, which names the runs
[[nodiscard]] std::optional<heat_map> held_classes_map(const std::vector<reported_run>& runs, const std::string& id,
                                                       const std::string& suffix);

} // namespace mneme
