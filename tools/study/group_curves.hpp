/// group_curves: what runs have measured, as curves and bars of their groups.
#pragma once
#include "runtime/results/timeline.hpp"
#include "tools/charts/chart.hpp"
#include "tools/study/run_activity.hpp"
#include "tools/study/stored_run.hpp"
#include <algorithm>
namespace mneme {

/// A run with everything that its charts show.
struct reported_run {
  stored_run run{};
  std::vector<evaluation_record> evaluations{}; ///< Empty where nothing was evaluated.
  std::vector<timeline_bin> course{};           ///< Empty for runs of versions that kept none.
  std::vector<class_accuracy> classes{};        ///< The same.
  std::optional<run_activity> activity{};       ///< Null where the run has no events.csv.
};

/// Runs that differ in the seed alone.
struct run_group {
  std::string name{}; ///< "fedprox", or "training.learning_rate = 0.1".
  std::vector<reported_run> runs{};
};

/// The groups in the order of their first runs.
[[nodiscard]] std::vector<run_group> grouped_runs(std::vector<reported_run> runs);
/// The name and look of group number `group`.
[[nodiscard]] chart_series series_of(const std::vector<run_group>& groups, std::size_t group);

/// A value of each step of a run: what x and y are.
using run_points = std::vector<std::pair<double, double>>;

/// The mean of the k-th points of all runs and, of several runs, least and most of their values as a band.
[[nodiscard]] chart_curve averaged_curve(chart_series series, const std::vector<run_points>& runs);
/// The same of bars whose categories are the points' x, whole numbers from 1 to `categories`.
[[nodiscard]] chart_bars averaged_bars(chart_series series, const std::vector<run_points>& runs,
                                       std::size_t categories);

/// A curve for each group, of what `points` makes of a run; groups without a point have none.
template <class Points>
std::vector<chart_curve> curves_of(const std::vector<run_group>& groups, Points points) {
  std::vector<chart_curve> curves;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<run_points> each;
    for (const auto& run : groups[g].runs)
      if (run_points drawn = points(run); !drawn.empty())
        each.push_back(std::move(drawn));
    if (!each.empty())
      curves.push_back(averaged_curve(series_of(groups, g), each));
  }
  return curves;
}

/// Places at which the tasks of runs end, but for the last task of each: a mark for all where all runs agree, else
/// those of each run in the colour of its group. @param place where the evaluation at the end of a task lies
template <class Place>
std::vector<chart_mark> task_marks(const std::vector<run_group>& groups, Place place) {
  std::vector<std::pair<std::size_t, std::vector<double>>> ends; // of each run, with its group
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
                            : chart_mark{.x = x, .look = series_look{.number = group}, .group = group});
    if (agree)
      break;
  }
  return marks;
}

} // namespace mneme
