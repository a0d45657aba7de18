/// longest_wait: limits of virtual time.
#pragma once
#include "runtime/base/virtual_clock.hpp"
#include <cmath>
namespace mneme {

/// The largest representable time.
inline constexpr virtual_time never = virtual_time::max();
/// Limit of all runs, 146 years: the sum of a time before it and one wait is representable.
inline constexpr virtual_time end_of_runs{never.time_since_epoch() / 2};
inline constexpr virtual_duration longest_wait = end_of_runs.time_since_epoch();

/// Rounds `ns` up to 1 ns, at most longest_wait. Callers should form one quotient of products, so that integers stay
/// exact.
[[nodiscard]] inline virtual_duration wait_of_ns(double ns) noexcept {
  if (!(ns < static_cast<double>(longest_wait.count())))
    return longest_wait;
  return virtual_duration{static_cast<virtual_duration::rep>(std::ceil(ns))};
}

/// at + wait, or `never` if that is not representable.
[[nodiscard]] inline virtual_time later_by(virtual_time at, virtual_duration wait) noexcept {
  return wait > never - at ? never : at + wait;
}

} // namespace mneme
