/// repeat_run: runs again what a run directory holds, for whoever wants to see the same digest.
#pragma once
#include "actors/run/simulation.hpp"
namespace mneme {

/// The resolved scenario of a run, under the name that the run had. Fails where the folder does not say, and where its
/// scenario.toml is not the one that was run.
[[nodiscard]] expected<scenario> scenario_of_run(const std::filesystem::path& folder);

/// Runs the scenario of `folder` again, from the beginning, into `options.out`. Fails with diagnostics for bad input:
/// as above, where the data have changed, and where there is something at `options.out`.
/// @pre one call at a time in a process; `options.out` is not empty
[[nodiscard]] expected<run_summary> repeat_run(const std::filesystem::path& folder, const run_options& options);

/// A new folder for runs that nobody keeps; it goes with its owner.
class passing_folder {
public:
  /// Throws std::system_error where there is no place for it.
  passing_folder();
  passing_folder(const passing_folder&) = delete;
  passing_folder& operator=(const passing_folder&) = delete;
  ~passing_folder();
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
  std::filesystem::path path_;
};

} // namespace mneme
