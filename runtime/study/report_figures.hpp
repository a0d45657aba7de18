/// report_figures: runs, grouped by what tells them apart, as the charts of a report.
#pragma once
#include "runtime/results/timeline.hpp"
#include "runtime/study/chart.hpp"
#include "runtime/study/stored_run.hpp"
namespace mneme {

/// A run with everything that its charts show.
struct reported_run {
  stored_run run{};
  std::vector<evaluation_record> evaluations{}; ///< Empty where nothing was evaluated.
  std::vector<timeline_bin> course{};           ///< Empty for runs of versions that kept none.
};

/// Runs that differ in the seed alone.
struct run_group {
  std::string name{}; ///< "fedprox", or "training.learning_rate = 0.1".
  std::vector<reported_run> runs{};
};

/// A picture with its id, for a page (`in_page`) and as a file of its own (`alone`).
struct report_figure {
  chart_text text{};
  std::string in_page{}, alone{};
};

/// The groups in the order of their first runs.
[[nodiscard]] std::vector<run_group> grouped_runs(std::vector<reported_run> runs);
/// Accuracy over rounds and over virtual time, the accuracy matrix of each group, forgetting of each task, clients and
/// tasks, traffic, staleness, and clients at work. Of several seeds the mean and, as a band, least and most. What no
/// run can show is left out.
[[nodiscard]] std::vector<report_figure> figures_of(const std::vector<run_group>& groups);

} // namespace mneme
