/// repeat_run: reruns the scenario of a run directory to compare digests.
#pragma once
#include "actors/run/simulation.hpp"
namespace mneme {

/// Returns the resolved scenario of a run, under the name of the run. Fails if the folder has none, or if scenario.toml
/// is not the one that was run.
[[nodiscard]] expected<scenario> scenario_of_run(const std::filesystem::path& folder);

/// Reruns the scenario of `folder` from the beginning into `options.out`. Fails for bad input as above, if the data
/// have changed, or if `options.out` exists.
/// @pre one call at a time in a process; `options.out` is not empty
[[nodiscard]] expected<run_summary> repeat_run(const std::filesystem::path& folder, const run_options& options);

/// A temporary folder that is deleted with this object.
class passing_folder {
public:
  /// Throws std::system_error if it cannot be created.
  passing_folder();
  passing_folder(const passing_folder&) = delete;
  passing_folder& operator=(const passing_folder&) = delete;
  ~passing_folder();
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
  std::filesystem::path path_;
};

} // namespace mneme
