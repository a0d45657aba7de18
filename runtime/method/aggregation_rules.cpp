#include "runtime/method/aggregation_rules.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
namespace mneme {
namespace {

/// Total order of floats: NaN is the largest value.
bool sorts_before(float a, float b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

/// Applies `reduce` to the sorted values of each entry.
template <class Reduce>
std::vector<float> reduce_entries(std::span<const upload_values> uploads, Reduce reduce) {
  MNEME_CHECK(!uploads.empty());
  const auto size = uploads.front().size();
  std::vector<float> result(size), column(uploads.size());
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t u = 0; u < uploads.size(); ++u)
      column[u] = uploads[u][i];
    std::sort(column.begin(), column.end(), sorts_before);
    result[i] = static_cast<float>(reduce(std::span<const float>(column)));
  }
  return result;
}

double mean_of(std::span<const float> values) {
  double sum = 0.0;
  for (const auto value : values)
    sum += value;
  return sum / static_cast<double>(values.size());
}

/// Squared distance. Infinite if a value is NaN, so that such an upload is never chosen.
double squared_distance(upload_values a, upload_values b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return std::isnan(sum) ? std::numeric_limits<double>::infinity() : sum;
}

std::vector<double> krum_scores(std::span<const upload_values> uploads, std::int64_t byzantine) {
  const auto count = uploads.size();
  std::vector<std::vector<double>> distances(count);
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b) {
      const auto distance = squared_distance(uploads[a], uploads[b]);
      distances[a].push_back(distance);
      distances[b].push_back(distance);
    }
  const auto closest =
      std::min(std::ssize(uploads) - 1, std::max<std::int64_t>(1, std::ssize(uploads) - byzantine - 2));
  std::vector<double> scores;
  for (auto& others : distances) {
    std::sort(others.begin(), others.end());
    scores.push_back(std::accumulate(others.begin(), others.begin() + closest, 0.0));
  }
  return scores;
}

/// Mean of the chosen uploads, summed in delivery order.
std::vector<float> mean_of_chosen(std::span<const upload_values> uploads, std::vector<std::size_t> chosen) {
  std::sort(chosen.begin(), chosen.end());
  std::vector<float> result(uploads.front().size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    double sum = 0.0;
    for (const auto u : chosen)
      sum += uploads[u][i];
    result[i] = static_cast<float>(sum / static_cast<double>(chosen.size()));
  }
  return result;
}

} // namespace

std::vector<float> median_of(std::span<const upload_values> uploads) {
  return reduce_entries(uploads, [](std::span<const float> sorted) {
    const auto middle = sorted.size() / 2;
    return mean_of(sorted.size() % 2 == 1 ? sorted.subspan(middle, 1) : sorted.subspan(middle - 1, 2));
  });
}

std::vector<float> trimmed_mean_of(std::span<const upload_values> uploads, double trim) {
  MNEME_CHECK(trim >= 0.0 && trim < 0.5, trim);
  const auto cut = static_cast<std::size_t>(trim * static_cast<double>(uploads.size()) * (1.0 + 1e-12));
  return reduce_entries(
      uploads, [cut](std::span<const float> sorted) { return mean_of(sorted.subspan(cut, sorted.size() - 2 * cut)); });
}

std::vector<std::size_t> krum_choice(std::span<const upload_values> uploads, std::int64_t byzantine,
                                     std::int64_t selected) {
  const auto scores = krum_scores(uploads, byzantine);
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
  order.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(selected, 1, std::ssize(order))));
  return order;
}

std::vector<float> aggregate_uploads(std::span<const upload_values> uploads, const aggregation_section& options) {
  switch (options.rule) {
  case aggregation_rule::mean:
    break;
  case aggregation_rule::median:
    return median_of(uploads);
  case aggregation_rule::trimmed_mean:
    return trimmed_mean_of(uploads, options.trim);
  case aggregation_rule::krum:
    return mean_of_chosen(uploads, krum_choice(uploads, options.byzantine, 1));
  case aggregation_rule::multi_krum:
    return mean_of_chosen(
        uploads, krum_choice(uploads, options.byzantine,
                             options.selected > 0 ? options.selected : std::ssize(uploads) - options.byzantine));
  }
  MNEME_CHECK(false, static_cast<int>(options.rule));
  return {};
}

} // namespace mneme
