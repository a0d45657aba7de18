/// job_array: writes a sweep as a self-contained script for Slurm's sbatch.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>
namespace mneme {

/// A run of a sweep that has not been completed.
struct array_point {
  std::string name{};             ///< Name of its scenario.
  std::string scenario{};         ///< Resolved scenario, as TOML.
  std::filesystem::path folder{}; ///< Run directory. If it exists, the run is resumed.
};

/// Writes `script` and a folder `script`.points with one scenario per run and the list of runs. If the script is
/// submitted again, it resumes interrupted runs. Throws std::system_error if a file cannot be written.
void write_job_array(const std::filesystem::path& script, const std::vector<array_point>& points, std::int64_t threads);

} // namespace mneme
