/// sweep_request: a grid of scenarios, keys and seeds, as a user asks for it.
#pragma once
#include "runtime/scenario/read.hpp"
namespace mneme {

/// A key of scenarios, and the values that it takes in turn.
struct sweep_axis {
  std::string key{};                 ///< "rounds.cohort"
  std::vector<std::string> values{}; ///< As TOML, or bare strings.
};

struct sweep_request {
  std::vector<std::filesystem::path> scenarios{};
  std::vector<sweep_axis> axes{};
  overrides settings{};              ///< They hold for all runs.
  std::vector<std::int64_t> seeds{}; ///< Empty: the scenarios' own.
};

/// "1,2,7-9"; empty for "". Fails, naming `option`, where that is no list of different seeds.
[[nodiscard]] expected<std::vector<std::int64_t>> parsed_seeds(const std::string& option, const std::string& text);
/// "KEY=V1,V2": commas within brackets, braces and quotes part no values.
[[nodiscard]] expected<sweep_axis> parsed_axis(const std::string& text);

/// True if the file parses and has a [sweep] table.
[[nodiscard]] bool is_sweep_file(const std::filesystem::path& file);
/// A file with nothing but
///   [sweep]
///   scenarios = ["a.toml", "b.toml"]   # relative to the file
///   seeds = "1-5"                      # or a list
///   [sweep.over]
///   training.learning_rate = [0.1, 0.01]
///   [sweep.set]
///   rounds.per_task = 3
/// Fails with everything that is wrong in it, each with its place.
[[nodiscard]] expected<sweep_request> read_sweep(const std::filesystem::path& file);

} // namespace mneme
