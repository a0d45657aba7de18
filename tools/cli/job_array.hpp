/// job_array: writes a sweep as a self-contained script for sbatch.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>
namespace mneme {

/// A run that is not done yet.
struct array_point {
  std::string name{};             ///< Name of its scenario.
  std::string scenario{};         ///< Resolved scenario, as TOML.
  std::filesystem::path folder{}; ///< Run directory; resumed if it exists.
};

/// Writes `script` and a folder `script`.points with a scenario per run and the list of runs. Submitting the script
/// again resumes interrupted runs. Throws std::system_error.
void write_job_array(const std::filesystem::path& script, const std::vector<array_point>& points, std::int64_t threads);

} // namespace mneme
