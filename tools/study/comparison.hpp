/// comparison: runs with several seeds as a table of means, deviations, intervals, paired differences and ranks.
#pragma once
#include "tools/study/statistics.hpp"
#include "tools/study/stored_run.hpp"
namespace mneme {

/// What a comparison shows.
struct comparison_request {
  std::vector<std::string> by{};      ///< Scenario keys that make rows; empty: what tells the runs apart.
  std::string columns{};              ///< A scenario key whose values make columns; "": a column per metric only.
  std::vector<std::string> metrics{}; ///< Names of summary.json, "time_to_accuracy.70" or "task_2"; empty: the usual.
  std::string baseline{};             ///< Its row is what others differ from, labels joined by commas; "": the first.
  /// Digests of scenarios, the first point of a sweep first: without a baseline, the row of the first that is among the
  /// runs is one.
  std::vector<std::string> sweep_order{};
};

/// A metric of the runs with one value of the column key.
struct compared_column {
  std::string value{}; ///< "" without a column key.
  std::string metric{};
  bool less_is_better = false;
};

struct compared_cell {
  std::map<std::int64_t, double> by_seed{}; ///< Seeds whose runs have a value.
  sample_statistics statistics{};           ///< Over those.
  std::optional<double> rank{};   ///< Mean over the seeds that every row of the column has; null if there are none.
  sample_statistics difference{}; ///< This row minus the baseline, over the seeds of both; paired.
};

struct compared_row {
  std::vector<std::string> labels{}; ///< A value per key; "-" where the runs have none.
  std::set<std::int64_t> seeds{};
  std::vector<compared_cell> cells{}; ///< A cell per column.
};

struct comparison {
  std::vector<std::string> by{};
  std::string column_key{};
  std::vector<compared_column> columns{};
  std::vector<compared_row> rows{}; ///< By label, numbers by value.
  std::size_t baseline = 0;
  diagnostics left_out{}; ///< Runs that are not done, and why.
};

/// Compares the runs that are done. Fails, naming all of them, where runs are damaged, are of different versions, share
/// row, column and seed, or share row and column though they differ in more than the seed; and where no run has a key
/// or a metric.
[[nodiscard]] expected<comparison> compare_runs(const std::vector<stored_run>& runs, const comparison_request& request);

/// The shortest of the usual lists of keys that tell runs apart but for their seeds: the method, the scenario's name,
/// or every key that differs.
[[nodiscard]] std::vector<std::string> telling_keys(const std::vector<stored_run>& runs);

/// The names that a metric may have among `runs`.
[[nodiscard]] std::vector<std::string> metric_names(const std::vector<stored_run>& runs);

} // namespace mneme
