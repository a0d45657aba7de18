/// longest_wait: how far virtual time goes, and waits that stay within it.
#pragma once
#include "runtime/base/virtual_clock.hpp"
#include <cmath>
namespace mneme {

/// The end of time.
inline constexpr virtual_time never = virtual_time::max();
/// No run gets so far, 146 years: sums of a time before it and of one wait stay within the clock's range.
inline constexpr virtual_time end_of_runs{never.time_since_epoch() / 2};
inline constexpr virtual_duration longest_wait = end_of_runs.time_since_epoch();

/// `ns` rounded up to 1 ns, at most longest_wait. Callers form one quotient of products, so that a whole number of ns
/// comes out exact.
[[nodiscard]] inline virtual_duration wait_of_ns(double ns) noexcept {
  if (!(ns < static_cast<double>(longest_wait.count())))
    return longest_wait;
  return virtual_duration{static_cast<virtual_duration::rep>(std::ceil(ns))};
}

/// at + wait, or `never` beyond the clock's range.
[[nodiscard]] inline virtual_time later_by(virtual_time at, virtual_duration wait) noexcept {
  return wait > never - at ? never : at + wait;
}

} // namespace mneme
