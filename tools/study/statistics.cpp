#include "tools/study/statistics.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <cmath>
#include <numeric>
#include <unsupported/Eigen/SpecialFunctions>
namespace mneme {
namespace {

/// P(T > t) of Student's t distribution, for t > 0.
double share_above(double t, double degrees) {
  return 0.5 * Eigen::numext::betainc(0.5 * degrees, 0.5, degrees / (degrees + t * t));
}

} // namespace

double t_quantile_975(std::int64_t degrees) {
  MNEME_CHECK(degrees >= 1, degrees);
  double low = 1.0, high = 13.0; // bounds: 12.71 for one degree of freedom, 1.96 in the limit
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = 0.5 * (low + high);
    (share_above(middle, static_cast<double>(degrees)) > 0.025 ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

sample_statistics statistics_of(const std::vector<double>& sample) {
  sample_statistics result{.count = std::ssize(sample)};
  if (sample.empty())
    return result;
  const auto n = static_cast<double>(sample.size());
  const double mean = std::accumulate(sample.begin(), sample.end(), 0.0) / n;
  result.mean = mean;
  if (sample.size() == 1)
    return result;
  double squares = 0.0;
  for (const double value : sample)
    squares += (value - mean) * (value - mean);
  result.deviation = std::sqrt(squares / (n - 1.0));
  result.half_width = t_quantile_975(result.count - 1) * *result.deviation / std::sqrt(n);
  return result;
}

std::vector<double> ranks_of(const std::vector<double>& values, bool less_is_better) {
  std::vector<double> ranks;
  for (const double value : values) {
    const auto better = std::count_if(values.begin(), values.end(),
                                      [&](double other) { return less_is_better ? other < value : other > value; });
    const auto equal = std::count(values.begin(), values.end(), value);
    ranks.push_back(static_cast<double>(better) + 0.5 * static_cast<double>(equal + 1));
  }
  return ranks;
}

} // namespace mneme
