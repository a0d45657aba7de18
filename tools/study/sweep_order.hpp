/// sweep_order: stores the order of a sweep's runs for later comparisons.
#pragma once
#include "tools/study/sweep_plan.hpp"
namespace mneme {

/// Writes FOLDER/sweep.json: label and scenario digest of each run. @throws std::system_error
void write_sweep_order(const std::filesystem::path& folder, const sweep_plan& plan);
/// Returns the scenario digests of the runs in order; empty if there is no readable file.
[[nodiscard]] std::vector<std::string> read_sweep_order(const std::filesystem::path& folder);

} // namespace mneme
