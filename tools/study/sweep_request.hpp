/// sweep_request: grid of scenarios, keys and seeds that the user requests.
#pragma once
#include "runtime/scenario/read.hpp"
namespace mneme {

/// Scenario key with the values that the sweep gives it.
struct sweep_axis {
  std::string key{};                 ///< "rounds.cohort"
  std::vector<std::string> values{}; ///< Values as TOML, or strings without quotes.
};

struct sweep_request {
  std::vector<std::filesystem::path> scenarios{};
  std::vector<sweep_axis> axes{};
  overrides settings{};              ///< Settings for all runs.
  std::vector<std::int64_t> seeds{}; ///< Seeds of the runs; empty: the seeds of the scenarios.
};

/// Parses "1,2,7-9"; returns an empty list for "". If two seeds are equal, fails with the name of `option`.
[[nodiscard]] expected<std::vector<std::int64_t>> parse_seeds(const std::string& option, const std::string& text);
/// Parses "KEY=V1,V2". Commas in brackets, braces and quotes do not separate values.
[[nodiscard]] expected<sweep_axis> parse_axis(const std::string& text);

/// True if the file parses and has a [sweep] table.
[[nodiscard]] bool is_sweep_file(const std::filesystem::path& file);
/// Reads a file of this form:
///   [sweep]
///   scenarios = ["a.toml", "b.toml"]   # relative to the file
///   seeds = "1-5"                      # or a list
///   [sweep.over]
///   training.learning_rate = [0.1, 0.01]
///   [sweep.set]
///   rounds.per_task = 3
/// Fails with all errors and their locations.
[[nodiscard]] expected<sweep_request> read_sweep(const std::filesystem::path& file);

} // namespace mneme
