/// study_options: selects runs, for commands that read several runs.
#pragma once
#include "tools/study/run_catalogue.hpp"
namespace mneme {

/// Parses the values of --where. Fails with all errors, including names that no run of the catalogue has.
[[nodiscard]] expected<std::vector<run_filter>> where_option(const std::vector<std::string>& texts,
                                                             const run_catalogue& catalogue);
/// Returns the runs in these folders that satisfy `where`, each once. A folder is a run directory or contains some.
/// Fails with an error for every folder that is neither, or is damaged.
[[nodiscard]] expected<std::vector<stored_run>> select_runs(const std::vector<std::string>& folders,
                                                            const std::vector<std::string>& where);

} // namespace mneme
