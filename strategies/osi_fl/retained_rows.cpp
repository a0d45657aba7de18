#include "strategies/osi_fl/retained_rows.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <map>
namespace mneme {

std::vector<std::int64_t> retained_rows(std::span<const double> scores, std::span<const std::int64_t> labels,
                                        std::int64_t count) {
  MNEME_CHECK(scores.size() == labels.size(), scores.size(), labels.size());
  std::map<std::int64_t, std::vector<std::int64_t>> by_label;
  for (std::int64_t row = 0; row < std::ssize(labels); ++row)
    by_label[labels[static_cast<std::size_t>(row)]].push_back(row);
  std::vector<std::int64_t> chosen;
  for (auto& [label, rows] : by_label) {
    std::stable_sort(rows.begin(), rows.end(), [&](std::int64_t a, std::int64_t b) {
      return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
    });
    rows.resize(static_cast<std::size_t>(std::min(count, std::ssize(rows))));
    chosen.insert(chosen.end(), rows.begin(), rows.end());
  }
  return chosen;
}

std::vector<float> weights_by_task(std::int64_t fresh, std::span<const std::int64_t> retained) {
  std::vector<std::int64_t> sizes{fresh};
  sizes.insert(sizes.end(), retained.begin(), retained.end());
  std::erase(sizes, 0);
  std::int64_t rows = 0;
  for (const auto size : sizes)
    rows += size;
  std::vector<float> weights;
  for (const auto size : sizes) // the sum of 1 / size over the rows of a task is 1, so the mean is tasks / rows
    weights.insert(weights.end(), static_cast<std::size_t>(size),
                   static_cast<float>(static_cast<double>(rows) / static_cast<double>(std::ssize(sizes) * size)));
  return weights;
}

} // namespace mneme
