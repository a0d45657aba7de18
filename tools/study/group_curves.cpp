#include "tools/study/group_curves.hpp"
#include "tools/study/comparison.hpp"
#include <cmath>
namespace mneme {
namespace {

/// Mean, minimum and maximum of values.
struct value_range {
  double sum = 0.0, low = 0.0, high = 0.0, count = 0.0;
  void add(double value) {
    low = count == 0.0 ? value : std::min(low, value);
    high = count == 0.0 ? value : std::max(high, value);
    sum += value;
    count += 1.0;
  }
  [[nodiscard]] double mean() const { return sum / count; }
};

} // namespace

std::vector<run_group> group_runs(std::vector<reported_run> runs) {
  std::vector<stored_run> stored;
  for (const auto& run : runs)
    stored.push_back(run.run);
  const auto keys = distinguishing_keys(stored);
  std::vector<run_group> groups;
  for (auto& run : runs) {
    std::string name;
    for (const auto& key : keys) {
      const auto* value = run_value(run.run, key);
      const bool plain = key == "strategy.name" || key == "scenario";
      name += (name.empty() ? "" : ", ") + (plain ? "" : key + " = ") + (value ? *value : "-");
    }
    const auto known =
        std::find_if(groups.begin(), groups.end(), [&](const run_group& group) { return group.name == name; });
    auto& group = known != groups.end() ? *known : groups.emplace_back(run_group{.name = name});
    group.runs.push_back(std::move(run));
  }
  return groups;
}

chart_series series_of(const std::vector<run_group>& groups, std::size_t group) {
  return {.name = groups[group].name, .look = {.number = group}, .group = group};
}

chart_curve average_curve(chart_series series, const std::vector<run_points>& runs) {
  chart_curve curve{.series = std::move(series)};
  std::size_t steps = 0;
  for (const auto& points : runs)
    steps = std::max(steps, points.size());
  for (std::size_t k = 0; k < steps; ++k) {
    value_range x, y;
    for (const auto& points : runs)
      if (k < points.size()) {
        x.add(points[k].first);
        y.add(points[k].second);
      }
    curve.points.emplace_back(x.mean(), y.mean());
    if (runs.size() > 1)
      curve.band.push_back({x.mean(), y.low, y.high});
  }
  return curve;
}

chart_bars average_bars(chart_series series, const std::vector<run_points>& runs, std::size_t categories) {
  std::vector<value_range> ranges(categories);
  for (const auto& points : runs)
    for (const auto& [category, value] : points)
      ranges.at(static_cast<std::size_t>(std::llround(category)) - 1).add(value);
  chart_bars bars{.series = std::move(series)};
  for (const auto& range : ranges)
    bars.bars.push_back(range.count > 0.0 ? std::optional(chart_bar{range.mean(), range.low, range.high})
                                          : std::nullopt);
  return bars;
}

} // namespace mneme
