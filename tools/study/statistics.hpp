/// statistics: what a sample of a few runs says of a method: mean, deviation, interval, ranks.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>
namespace mneme {

/// A sample's mean, and how far it may be from the mean of all seeds that there are.
struct sample_statistics {
  std::int64_t count = 0;
  std::optional<double> mean{};       ///< Null for an empty sample.
  std::optional<double> deviation{};  ///< With n - 1 below the sum; null for fewer than two values.
  std::optional<double> half_width{}; ///< The 95 % interval is mean - half_width .. mean + half_width.
};

/// The interval is Student's (1908): t(0.975, n - 1) * deviation / sqrt(n).
[[nodiscard]] sample_statistics statistics_of(const std::vector<double>& sample);

/// The x below which a share of 0.975 of Student's t distribution lies. @pre degrees >= 1
[[nodiscard]] double t_quantile_975(std::int64_t degrees);

/// Ranks from 1, the best first; equal values share the mean of their places.
[[nodiscard]] std::vector<double> ranks_of(const std::vector<double>& values, bool less_is_better);

} // namespace mneme
