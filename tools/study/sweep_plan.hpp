/// sweep_plan: all runs of a sweep, validated before the first one starts.
#pragma once
#include "tools/study/sweep_request.hpp"
namespace mneme {

struct planned_run {
  mneme::scenario scenario{};
  std::string digest{}; ///< Digest of the scenario.
  std::string label{};  ///< "quickstart rounds.cohort=5 seed=1"
  std::string point{};  ///< Label without the seed.
};

struct sweep_plan {
  std::vector<planned_run> runs{}; ///< Ordered by scenarios, then values of the axes, then seeds.
  std::vector<std::string> by{};   ///< Keys in which the points differ. They define the rows of a comparison.
  diagnostics warnings{};
  diagnostics errors{}; ///< Errors of points that are not among the runs.
};

/// Reads all scenarios of the grid. Fails with all errors, each once. Two points that are the same run are an error.
[[nodiscard]] expected<sweep_plan> plan_sweep(const sweep_request& request);
/// Reads all scenarios of the grid. Returns the valid points as runs, and the errors of all others in `errors`.
[[nodiscard]] sweep_plan check_sweep_points(const sweep_request& request);

} // namespace mneme
