/// reproduce_run: reruns the scenario of a run directory, so that the digests can be compared.
#pragma once
#include "actors/run/simulation.hpp"
namespace mneme {

/// Returns the resolved scenario of a run, named like the run. Fails if the folder has none, or if scenario.toml has
/// changed since the run.
[[nodiscard]] expected<scenario> read_run_scenario(const std::filesystem::path& folder);

/// Reruns the scenario of `folder` from the beginning into `options.out`. Fails if read_run_scenario() fails, if the
/// data have changed, or if `options.out` exists.
/// @pre no other run in this process; `options.out` is not empty
[[nodiscard]] expected<run_summary> reproduce_run(const std::filesystem::path& folder, const run_options& options);

/// Temporary folder that the destructor deletes.
class temp_folder {
public:
  /// Throws std::system_error if the folder cannot be created.
  temp_folder();
  temp_folder(const temp_folder&) = delete;
  temp_folder& operator=(const temp_folder&) = delete;
  ~temp_folder();
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
  std::filesystem::path path_;
};

} // namespace mneme
