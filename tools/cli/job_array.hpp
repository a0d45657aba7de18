/// job_array: the points of a sweep as a script for sbatch, which needs nothing but the program.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>
namespace mneme {

/// One run that is not done yet.
struct array_point {
  std::string name{};             ///< Its scenario's.
  std::string scenario{};         ///< Resolved, as TOML.
  std::filesystem::path folder{}; ///< The run's, which is gone on with where it has begun.
};

/// Writes `script` and, beside it in the folder `script`.points, a scenario for each point and the list of them. An
/// array job that is submitted again goes on with what was interrupted. Throws std::system_error.
void write_job_array(const std::filesystem::path& script, const std::vector<array_point>& points, std::int64_t threads);

} // namespace mneme
