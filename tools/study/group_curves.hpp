/// group_curves: curves and bars of runs that are grouped by scenario.
#pragma once
#include "runtime/results/timeline.hpp"
#include "tools/charts/chart.hpp"
#include "tools/study/run_activity.hpp"
#include "tools/study/stored_run.hpp"
#include <algorithm>
namespace mneme {

/// A run with all data that charts show.
struct reported_run {
  stored_run run{};
  std::vector<evaluation_record> evaluations{}; ///< Empty if nothing was evaluated.
  std::vector<timeline_bin> course{};           ///< Empty for runs of older versions.
  std::vector<class_accuracy> classes{};        ///< Empty for runs of older versions.
  std::vector<client_class_rows> held{};        ///< Empty if the run has no client_classes.csv.
  std::optional<run_activity> activity{};       ///< nullopt if the run has no events.csv.
};

/// Runs that differ only in the seed.
struct run_group {
  std::string name{}; ///< "fedprox", or "training.learning_rate = 0.1".
  std::vector<reported_run> runs{};
};

/// Groups runs, in the order of each group's first run.
[[nodiscard]] std::vector<run_group> group_runs(std::vector<reported_run> runs);
/// Name and style of a group.
[[nodiscard]] chart_series series_of(const std::vector<run_group>& groups, std::size_t group);

/// Points (x, y) of a run, one per step.
using run_points = std::vector<std::pair<double, double>>;

/// Mean of the k-th points of all runs; for several runs also the band from minimum to maximum.
[[nodiscard]] chart_curve average_curve(chart_series series, const std::vector<run_points>& runs);
/// average_curve() as bars. The points' x are categories, integers from 1 to `categories`.
[[nodiscard]] chart_bars average_bars(chart_series series, const std::vector<run_points>& runs, std::size_t categories);

/// One curve per group, from the points that `points` returns for a run. A group without points has no curve.
template <class Points>
std::vector<chart_curve> curves_of(const std::vector<run_group>& groups, Points points) {
  std::vector<chart_curve> curves;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<run_points> each;
    for (const auto& run : groups[g].runs)
      if (run_points drawn = points(run); !drawn.empty())
        each.push_back(std::move(drawn));
    if (!each.empty())
      curves.push_back(average_curve(series_of(groups, g), each));
  }
  return curves;
}

/// Vertical marks at the ends of tasks, except the last task of each run. If the ends are equal for all runs, they
/// share the marks. Otherwise each run has marks of its own in the color of its group. @param place returns x of the
/// evaluation at the end of a task
template <class Place>
std::vector<chart_mark> task_marks(const std::vector<run_group>& groups, Place place) {
  std::vector<std::pair<std::size_t, std::vector<double>>> ends; // group of each run, and x of the ends of its tasks
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const auto& run : groups[g].runs) {
      if (run.evaluations.empty())
        continue;
      auto& [group, places] = ends.emplace_back(g, std::vector<double>());
      for (const auto& line : run.evaluations)
        if (line.end_of_task && line.task != run.evaluations.back().task)
          places.push_back(place(line));
    }
  const bool agree =
      std::all_of(ends.begin(), ends.end(), [&](const auto& each) { return each.second == ends.front().second; });
  std::vector<chart_mark> marks;
  for (const auto& [group, places] : ends) {
    for (const double x : places)
      marks.push_back(agree ? chart_mark{.x = x}
                            : chart_mark{.x = x, .look = series_style{.number = group}, .group = group});
    if (agree)
      break;
  }
  return marks;
}

} // namespace mneme
