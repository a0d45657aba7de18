/// sweep_plan: every run of a sweep, checked and told apart before the first of them starts.
#pragma once
#include "tools/study/sweep_request.hpp"
namespace mneme {

struct planned_run {
  mneme::scenario scenario{};
  std::string digest{}; ///< Digest of the scenario.
  std::string label{};  ///< "quickstart rounds.cohort=5 seed=1"
  std::string point{};  ///< The label without its seed.
};

struct sweep_plan {
  std::vector<planned_run> runs{}; ///< Scenarios, then values in the order of the axes, then seeds.
  std::vector<std::string> by{};   ///< The keys that tell the points apart, for a comparison.
  diagnostics warnings{};
  diagnostics wrong{}; ///< What is wrong with points that are not among the runs.
};

/// Reads every scenario of the grid. Fails with all that is wrong in them, each finding once, and where two points are
/// the same run.
[[nodiscard]] expected<sweep_plan> plan_sweep(const sweep_request& request);
/// The same of the points that are well, so that these can be checked further; all that is wrong with others is in
/// `wrong`.
[[nodiscard]] sweep_plan checked_points(const sweep_request& request);

} // namespace mneme
