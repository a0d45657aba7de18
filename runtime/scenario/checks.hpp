/// checks: finds illegal combinations of keys, and keys that have no effect.
#pragma once
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// A finding about one or more keys. It is reported at the first of them that the user gave, and suppressed if one of
/// them could not be read.
struct remark {
  std::vector<std::string> keys{}; ///< "rounds.cohort"
  std::string text{};
};

/// Errors: combinations that no run can execute, as far as this is known without the data.
[[nodiscard]] std::vector<remark> check_combinations(const scenario& settings);
/// Warnings: combinations that can run but are probably not intended.
[[nodiscard]] std::vector<remark> doubtful_choices(const scenario& settings);

/// One remark for each key that the chosen kinds do not read, whether or not the user gave it.
[[nodiscard]] std::vector<remark> unread_keys(const scenario& settings);

} // namespace mneme
