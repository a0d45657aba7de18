/// wait_time: limits of virtual time.
#pragma once
#include "runtime/base/virtual_clock.hpp"
#include <cmath>
namespace mneme {

/// The largest representable virtual time.
inline constexpr virtual_time never = virtual_time::max();
/// Upper limit of all runs, 146 years. An earlier time plus one duration is always representable.
inline constexpr virtual_time end_of_runs{never.time_since_epoch() / 2};
inline constexpr virtual_duration max_wait = end_of_runs.time_since_epoch();

/// Converts `ns` to a duration, rounded up to 1 ns and limited to max_wait. Compute `ns` as one quotient of
/// products, so that integers stay exact.
[[nodiscard]] inline virtual_duration wait_from_ns(double ns) noexcept {
  if (!(ns < static_cast<double>(max_wait.count())))
    return max_wait;
  return virtual_duration{static_cast<virtual_duration::rep>(std::ceil(ns))};
}

/// Returns at + wait, or `never` if the sum is not representable.
[[nodiscard]] inline virtual_time add_saturating(virtual_time at, virtual_duration wait) noexcept {
  return wait > never - at ? never : at + wait;
}

} // namespace mneme
