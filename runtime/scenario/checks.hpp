/// Checks of a whole scenario: combinations of keys that cannot be, and keys that have no effect.
#pragma once
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Something about one or more keys. It is shown at the first of them that the user gave, and not
/// at all if one of them could not be read.
struct remark {
  std::vector<std::string> keys{}; ///< "rounds.cohort"
  std::string text{};
};

/// What no run could do, as far as that can be known without the data.
[[nodiscard]] std::vector<remark> check_combinations(const scenario& settings);
/// What can be run, and can hardly be meant.
[[nodiscard]] std::vector<remark> doubtful_choices(const scenario& settings);

/// Keys that the chosen kinds do not read: one key each, whether or not the user gave it.
[[nodiscard]] std::vector<remark> unread_keys(const scenario& settings);

} // namespace mneme
