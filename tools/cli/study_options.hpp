/// What commands that look at many runs share: which runs are meant.
#pragma once
#include "tools/study/run_catalogue.hpp"
namespace mneme {

/// The values of --where; fails with all that are wrong, and where no run of the catalogue has a name.
[[nodiscard]] expected<std::vector<run_filter>> where_option(const std::vector<std::string>& texts,
                                                             const run_catalogue& catalogue);
/// Each folder is that of a run, or holds runs, of which those count for which `where` holds. Each run once; fails,
/// naming every folder that is neither or is damaged.
[[nodiscard]] expected<std::vector<stored_run>> selected_runs(const std::vector<std::string>& folders,
                                                              const std::vector<std::string>& where);

} // namespace mneme
