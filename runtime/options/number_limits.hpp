/// number_limits: default bounds of keys that declare none, and bounds of durations and sizes.
#pragma once
#include "runtime/options/keys.hpp"
namespace mneme {

/// Integers are in [-integer_max, integer_max], so that the product of two fits int64.
inline constexpr std::int64_t integer_max = 1'000'000'000;
/// Numbers are 0 or have a magnitude in [number_min, number_max]. float32 can then represent products and quotients of
/// three numbers.
inline constexpr double number_min = 1e-12, number_max = 1e12;
/// Upper bound of seeds. Bounds are compared as doubles. As a double this bound is 2^63, so any integer >= 0 is
/// accepted. The largest int64 itself would mean "no bound declared".
inline constexpr std::int64_t seed_max = std::numeric_limits<std::int64_t>::max() - 1;
/// Upper bound of durations: 114 years. A run ends after 146 years (wait_time.hpp), so the sum of a time and a
/// duration stays within the range of the clock.
inline constexpr virtual_duration duration_max = std::chrono::hours(1'000'000);
/// Upper bound of sizes: 1 PiB.
inline constexpr byte_size size_max{std::int64_t{1} << 50};

} // namespace mneme
