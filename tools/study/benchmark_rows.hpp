/// benchmark_rows: scenarios of the benchmark and their recorded results.
#pragma once
#include "tools/study/stored_run.hpp"
namespace mneme {

/// A scenario of the benchmark, FOLDER/TRACK/METHOD.toml. The scenarios of a track extend FOLDER/base/TRACK.toml.
struct benchmark_scenario {
  std::string track{}, method{};
  std::filesystem::path file{};
};

/// Recorded result of a scenario with a seed.
struct benchmark_row {
  std::string track{}, method{};
  std::int64_t seed = 0;
  std::string scenario_digest{}, run_digest{}, version{}, processor{};
  std::int64_t digest_epoch = 1;
  std::map<std::string, double> figures{}; ///< The defined numbers of summary.json that benchmark_figures() names.
};

/// Names of the numbers of summary.json that a row records.
[[nodiscard]] const std::vector<std::string>& benchmark_figures();

/// Scenarios of the benchmark in `folder`, sorted by track and method. Fails with the known names if there is no such
/// track or method. @param track "": all tracks @param method "": all methods
[[nodiscard]] expected<std::vector<benchmark_scenario>>
benchmark_scenarios(const std::filesystem::path& folder, const std::string& track, const std::string& method);

/// Reads FOLDER/rows/TRACK/METHOD.json; empty if the file is missing. Fails with the file name if it is damaged.
[[nodiscard]] expected<std::vector<benchmark_row>> read_benchmark_rows(const std::filesystem::path& folder,
                                                                       const benchmark_scenario& of);
/// Replaces the rows of the seeds in `rows`, and keeps those of other seeds. @throws on a failure to write
[[nodiscard]] expected<void> write_benchmark_rows(const std::filesystem::path& folder, const benchmark_scenario& of,
                                                  const std::vector<benchmark_row>& rows);

/// The row of a completed run.
[[nodiscard]] benchmark_row benchmark_row_of(const benchmark_scenario& of, const stored_run& run);

} // namespace mneme
