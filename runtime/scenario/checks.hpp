/// checks: finds invalid combinations of keys, and keys without effect.
#pragma once
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// A finding about one or more keys. The finding is reported at the first key that the user gave. It is suppressed if
/// one of its keys could not be parsed.
struct scenario_finding {
  std::vector<std::string> keys{}; ///< Full names such as "rounds.cohort".
  std::string text{};
};

/// Errors: combinations that no run can execute. Covers everything that can be found without the data.
[[nodiscard]] std::vector<scenario_finding> check_combinations(const scenario& settings);
/// The part of check_combinations() about [uploads], [aggregation] and attackers.
[[nodiscard]] std::vector<scenario_finding> check_uploads(const scenario& settings);
/// Warnings: combinations that can run but are probably unintended.
[[nodiscard]] std::vector<scenario_finding> find_suspicious(const scenario& settings);

/// Returns a finding for every key that the chosen kinds do not read, whether or not the user gave it.
[[nodiscard]] std::vector<scenario_finding> find_unused_keys(const scenario& settings);

} // namespace mneme
