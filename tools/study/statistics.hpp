/// statistics: mean, standard deviation, confidence interval and ranks of a small sample of runs.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>
namespace mneme {

/// Mean of a sample with its confidence interval.
struct sample_statistics {
  std::int64_t count = 0;
  std::optional<double> mean{};       ///< nullopt for an empty sample.
  std::optional<double> deviation{};  ///< Sample standard deviation (n - 1); nullopt for fewer than two values.
  std::optional<double> half_width{}; ///< The 95 % interval is mean - half_width to mean + half_width.
};

/// Computes Student's interval (1908): half_width = t(0.975, n - 1) * deviation / sqrt(n).
[[nodiscard]] sample_statistics statistics_of(const std::vector<double>& sample);

/// The 0.975 quantile of Student's t distribution. @pre degrees >= 1
[[nodiscard]] double t_quantile_975(std::int64_t degrees);

/// Returns ranks from 1, the best first. Equal values get the mean of their ranks.
[[nodiscard]] std::vector<double> ranks_of(const std::vector<double>& values, bool less_is_better);

} // namespace mneme
