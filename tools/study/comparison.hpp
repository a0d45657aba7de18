/// comparison: table of runs with several seeds: means, standard deviations, intervals, paired differences and ranks.
#pragma once
#include "tools/study/statistics.hpp"
#include "tools/study/stored_run.hpp"
namespace mneme {

/// Options of a comparison.
struct comparison_request {
  std::vector<std::string> by{};      ///< Scenario keys that define rows; empty: the keys in which the runs differ.
  std::string columns{};              ///< A scenario key whose values make columns; "": a column per metric only.
  std::vector<std::string> metrics{}; ///< Numbers of summary.json, "time_to_accuracy.70", "task_2"; empty: defaults.
  std::string baseline{};             ///< Labels of the baseline row, joined by commas; "": the first row.
  /// Scenario digests in the order of the sweep. If no baseline is given, the first of these scenarios that has runs is
  /// the baseline.
  std::vector<std::string> sweep_order{};
};

/// A metric for one value of the column key.
struct compared_column {
  std::string value{}; ///< "" without a column key.
  std::string metric{};
  bool less_is_better = false;
};

struct compared_cell {
  std::map<std::int64_t, double> by_seed{}; ///< Value by seed, for the seeds whose runs have one.
  sample_statistics statistics{};           ///< Statistics over these seeds.
  std::optional<double> rank{};             ///< Mean rank over the seeds that all rows of the column share; nullopt if
                                            ///< there are none.
  sample_statistics difference{};           ///< This row minus the baseline, paired by seed.
};

struct compared_row {
  std::vector<std::string> labels{}; ///< A value per key; "-" where the runs have none.
  std::set<std::int64_t> seeds{};
  std::vector<compared_cell> cells{}; ///< One per column.
};

struct comparison {
  std::vector<std::string> by{};
  std::string column_key{};
  std::vector<compared_column> columns{};
  std::vector<compared_row> rows{}; ///< Sorted by label, numeric labels by value.
  std::size_t baseline = 0;
  diagnostics warnings{}; ///< Runs that are not done, with reasons; keys of the experiment in which methods differ.
};

/// Compares the runs that are done. Fails with all errors: damaged runs, different versions, two runs with equal row,
/// column and seed, runs of one cell that differ in more than the seed, and a key or metric that no run has.
[[nodiscard]] expected<comparison> compare_runs(const std::vector<stored_run>& runs, const comparison_request& request);

/// Returns the shortest of three lists of keys that distinguishes the runs, apart from their seeds: the method, the
/// scenario's name, or all keys that differ.
[[nodiscard]] std::vector<std::string> distinguishing_keys(const std::vector<stored_run>& runs);

/// Names of metrics that `runs` have.
[[nodiscard]] std::vector<std::string> metric_names(const std::vector<stored_run>& runs);

} // namespace mneme
