/// Metrics of federated continual learning: the accuracy matrix and values derived from it.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/virtual_clock.hpp"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>
namespace mneme {

/// Number of test rows of one class, and of correct predictions among them.
struct class_tally {
  std::int64_t rows = 0, correct = 0;
};

/// One evaluation, as a line of metrics.jsonl. Accuracies in percent.
struct evaluation_record {
  task_id task{};
  round_id round{}; ///< Last closed round, from 0.
  virtual_time at{};
  double accuracy = 0.0;                             ///< Over the test rows of all tasks seen.
  std::vector<double> accuracy_per_task{};           ///< Tasks 0 to `task`.
  std::vector<std::int64_t> rows_per_task{};         ///< Number of test rows of each.
  double loss = 0.0;                                 ///< Mean over the same rows.
  std::int64_t upload_bytes = 0, download_bytes = 0; ///< Since the start of the run.
  std::int64_t clients_enrolled = 0, client_rounds = 0, late_uploads = 0, dropped = 0;
  bool end_of_task = false;           ///< Adds a row to the accuracy matrix.
  std::optional<double> forgetting{}; ///< So far, by forgetting_at(); set by the recorder.
  /// Training loss of the clients whose uploads were folded in the round or server step before the evaluation: mean
  /// over rows; each training counts with its mean over the steps of its last epoch. nullopt: none was reported.
  std::optional<double> training_loss{};
  std::map<std::string, double> training_loss_terms{}; ///< Its terms, by name.
  std::vector<class_tally> per_class{}; ///< By label, at the end of a task; else empty. In a separate file.
};

/// An accuracy in percent, and the virtual seconds at which it was first reached; nullopt: never.
struct reached_target {
  double accuracy = 0.0;
  std::optional<double> seconds{};
};
/// Time at which each of `targets` was reached by the accuracy on all tasks seen. @param evaluations in virtual order
[[nodiscard]] std::vector<reached_target> times_to(const std::vector<double>& targets,
                                                   const std::vector<evaluation_record>& evaluations);

/// The nine deciles, with linear interpolation (definition 7 of Hyndman and Fan 1996). Empty if there is no value.
[[nodiscard]] std::vector<double> deciles_of(std::vector<double> values);

/// Accuracy matrix: a[t][s] is the accuracy on task s after task t, in percent.
struct accuracy_matrix {
  std::vector<std::vector<double>> rows{}; ///< rows[t] has t + 1 entries.
  std::vector<double> pooled{};            ///< Accuracy on all classes seen after task t, over all their rows.
  void add(const evaluation_record& end_of_task);
};

/// Definitions in docs/metrics.md. Undefined values are nullopt, and null in summary.json.
struct continual_metrics {
  std::optional<double> average_incremental_accuracy{}; ///< Mean over t of pooled[t].
  std::optional<double> average_accuracy_task_mean{};   ///< Mean over t of the mean of row t.
  std::optional<double> final_accuracy{};               ///< pooled, of the last row.
  std::optional<double> final_accuracy_task_mean{};
  std::optional<double> forgetting{};                ///< Mean over t < T of max over s < T of a[s][t], minus a[T][t].
  std::optional<double> forgetting_including_last{}; ///< Likewise with max over s <= T.
  std::optional<double> forgetting_from_first{};     ///< Mean over t < T of a[t][t] - a[T][t].
  std::optional<double> backward_transfer{};         ///< The negative of forgetting_from_first.
};
[[nodiscard]] continual_metrics metrics_of(const accuracy_matrix& matrix);

/// Forgetting during task T: mean over t < T of max over s < T of a[s][t], minus the current accuracy on t. nullopt in
/// the first task, and if rows of `before` are missing. @param before matrix rows of the tasks before T
[[nodiscard]] std::optional<double> forgetting_at(const accuracy_matrix& before, const evaluation_record& now);

} // namespace mneme
