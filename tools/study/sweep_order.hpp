/// sweep_order: what the newest sweep into a folder has run, in its order, for those who look at the runs later.
#pragma once
#include "tools/study/sweep_plan.hpp"
namespace mneme {

/// FOLDER/sweep.json: an object with the label and scenario digest of each run. @throws std::system_error
void write_sweep_order(const std::filesystem::path& folder, const sweep_plan& plan);
/// The digests of its runs, the first point first; empty where no sweep has left a file that can be read.
[[nodiscard]] std::vector<std::string> read_sweep_order(const std::filesystem::path& folder);

} // namespace mneme
