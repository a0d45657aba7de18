/// Metrics of federated continual learning: the accuracy matrix and what follows from it.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/virtual_clock.hpp"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>
namespace mneme {

/// Test rows of one class, and how many of them were taken for it.
struct class_tally {
  std::int64_t rows = 0, correct = 0;
};

/// One evaluation, as a line of metrics.jsonl. Accuracies in percent.
struct evaluation_record {
  task_id task{};
  round_id round{}; ///< The round after which it was taken, from 0.
  virtual_time at{};
  double accuracy = 0.0;                             ///< Pooled over the test rows of all tasks seen.
  std::vector<double> accuracy_per_task{};           ///< Accuracies of tasks 0 .. task.
  std::vector<std::int64_t> rows_per_task{};         ///< Test rows behind them.
  double loss = 0.0;                                 ///< Mean over the same rows.
  std::int64_t upload_bytes = 0, download_bytes = 0; ///< Since the run began.
  std::int64_t clients_enrolled = 0, client_rounds = 0, late_uploads = 0, dropped = 0;
  bool end_of_task = false;           ///< Becomes a row of the accuracy matrix.
  std::optional<double> forgetting{}; ///< So far, by forgetting_at(); filled by the recorder.
  /// The clients' own loss in the round, or server step, that ended with the evaluation: the mean over the rows of all
  /// trainings whose uploads it has taken in, each by its mean over the steps of its last epoch. Null: none told one.
  std::optional<double> training_loss{};
  std::map<std::string, double> training_loss_terms{}; ///< What it is the sum of, by name.
  std::vector<class_tally> per_class{}; ///< By label, at the end of a task; empty otherwise. In a file of its own.
};

/// An accuracy in percent, and the virtual seconds after which it was first measured; null: never.
struct reached_target {
  double accuracy = 0.0;
  std::optional<double> seconds{};
};
/// When each of `targets` was reached, by the accuracy on all tasks seen. @param evaluations in virtual order
[[nodiscard]] std::vector<reached_target> times_to(const std::vector<double>& targets,
                                                   const std::vector<evaluation_record>& evaluations);

/// The nine deciles: where a tenth, two tenths, ... of the sorted values lie, interpolated between neighbours (the
/// usual definition 7 of Hyndman and Fan 1996). Empty if there is no value.
[[nodiscard]] std::vector<double> deciles_of(std::vector<double> values);

/// Rows of the accuracy matrix: a[t][s] is the accuracy on task s just after task t, in percent.
struct accuracy_matrix {
  std::vector<std::vector<double>> rows{}; ///< rows[t] has t + 1 entries.
  std::vector<double> pooled{};            ///< Accuracy on all classes seen after task t, pooled over rows.
  void add(const evaluation_record& end_of_task);
};

/// Section 6 of the design; undefined values are nullopt, and null in summary.json.
struct continual_metrics {
  std::optional<double> average_incremental_accuracy{}; ///< Mean over t of pooled[t].
  std::optional<double> average_accuracy_task_mean{};   ///< Mean over t of the mean of row t.
  std::optional<double> final_accuracy{};               ///< pooled of the last row.
  std::optional<double> final_accuracy_task_mean{};
  std::optional<double> forgetting{};                ///< Mean over t < T of max over s < T of a[s][t], minus a[T][t].
  std::optional<double> forgetting_including_last{}; ///< The same, max over s <= T.
  std::optional<double> forgetting_from_first{};     ///< Mean over t < T of a[t][t] - a[T][t].
  std::optional<double> backward_transfer{};         ///< Its negative.
};
[[nodiscard]] continual_metrics metrics_of(const accuracy_matrix& matrix);

/// Forgetting at an evaluation during task T: mean over t < T of max over s < T of a[s][t], minus the accuracy on t
/// now. Null in the first task, and where rows of `before` are missing. @param before rows of the tasks before T
[[nodiscard]] std::optional<double> forgetting_at(const accuracy_matrix& before, const evaluation_record& now);

} // namespace mneme
