/// metrics: evaluations of a run, and the metrics of continual learning that are derived from them.
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

/// Test results on one client's own test rows, for the server's model for this client and for the client's own model.
struct client_test {
  client_id client{};
  std::int64_t train_rows = 0; ///< Rows that the client can train on in the current task.
  std::int64_t test_rows = 0;  ///< Test rows of all tasks seen.
  std::int64_t correct_before = 0, correct = 0;
};
/// Distribution of the accuracies of clients' models, in percent. Each client counts once.
struct personal_accuracies {
  std::int64_t clients = 0;
  double before = 0.0, mean = 0.0;
  std::vector<double> deciles{}; ///< Deciles for the clients' own models.
};
/// Summarizes the tests. Clients without test rows do not count.
[[nodiscard]] personal_accuracies personal_accuracies_of(const std::vector<client_test>& tests);

/// One evaluation; it becomes a line of metrics.jsonl. Accuracies are in percent.
struct evaluation_record {
  task_id task{};
  round_id round{}; ///< The last closed round, from 0.
  virtual_time at{};
  double accuracy = 0.0;                             ///< Accuracy on the test rows of all tasks seen.
  std::vector<double> accuracy_per_task{};           ///< Accuracy on each of the tasks 0 to `task`.
  std::vector<std::int64_t> rows_per_task{};         ///< Number of test rows of each task.
  double loss = 0.0;                                 ///< Mean loss over the test rows of all tasks seen.
  std::int64_t upload_bytes = 0, download_bytes = 0; ///< Sums since the start of the run.
  std::int64_t clients_enrolled = 0, client_rounds = 0, late_uploads = 0, dropped = 0;
  std::optional<double> perplexity{}; ///< exp(loss) of a net that predicts tokens, else nullopt; set by the recorder.
  bool end_of_task = false;           ///< True if the evaluation becomes a row of the accuracy matrix.
  std::optional<double> forgetting{}; ///< forgetting_at() of this evaluation; set by the recorder.
  /// Mean training loss over the rows of the clients folded in the last round or server step. The loss of a training is
  /// its mean over the steps of the last epoch. nullopt if no loss was reported.
  std::optional<double> training_loss{};
  std::map<std::string, double> training_loss_terms{}; ///< Loss terms by name.
  /// Epsilon of differential privacy after the last closed round, at uploads.delta. nullopt without
  /// uploads.noise_multiplier.
  std::optional<double> epsilon{};
  std::vector<class_tally> per_class{}; ///< By label at the end of a task, otherwise empty. Saved in a separate file.
  std::optional<personal_accuracies> personal{}; ///< Set only with evaluation.personal.
  std::vector<client_test> clients{};            ///< With evaluation.personal: filled until the recorder has written
                                                 ///< client_accuracy.csv.
};

/// An accuracy in percent, and the virtual time in seconds at which it was first reached; nullopt if it was never
/// reached.
struct reached_target {
  double accuracy = 0.0;
  std::optional<double> seconds{};
};
/// Determines when the accuracy on all tasks seen first reached each target.
/// @param evaluations in order of virtual time
[[nodiscard]] std::vector<reached_target> times_to(const std::vector<double>& targets,
                                                   const std::vector<evaluation_record>& evaluations);

/// The nine deciles, with linear interpolation (definition 7 of Hyndman and Fan 1996). Empty without values.
[[nodiscard]] std::vector<double> deciles_of(std::vector<double> values);

/// Accuracy matrix: a[t][s] is the accuracy in percent on task s after task t.
struct accuracy_matrix {
  std::vector<std::vector<double>> rows{}; ///< rows[t] has the t + 1 entries a[t][0] to a[t][t].
  std::vector<double> pooled{};            ///< Accuracy after task t on all test rows of the classes seen.
  /// Adds the row of a task. @param end_of_task the evaluation at its end
  void add(const evaluation_record& end_of_task);
};

/// Metrics of a run; see docs/metrics.md. Undefined values are nullopt, and null in summary.json.
struct continual_metrics {
  std::optional<double> average_incremental_accuracy{}; ///< Mean over t of pooled[t].
  std::optional<double> average_accuracy_task_mean{};   ///< Mean over t of the mean of row t.
  std::optional<double> final_accuracy{};               ///< pooled[T]; T is the last task.
  std::optional<double> final_accuracy_task_mean{};
  std::optional<double> forgetting{};                ///< Mean over t < T of (max over s < T of a[s][t]) - a[T][t].
  std::optional<double> forgetting_including_last{}; ///< Mean over t < T of (max over s <= T of a[s][t]) - a[T][t].
  std::optional<double> forgetting_from_first{};     ///< Mean over t < T of a[t][t] - a[T][t].
  std::optional<double> backward_transfer{};         ///< Negative forgetting_from_first.
};
/// Computes the metrics of a run; all are nullopt for an empty matrix.
[[nodiscard]] continual_metrics metrics_of(const accuracy_matrix& matrix);

/// Forgetting during task T: mean over t < T of (max over s < T of a[s][t]) minus the current accuracy on t. Returns
/// nullopt in the first task, and if rows of `before` are missing. @param before rows of the matrix for the tasks
/// before T
[[nodiscard]] std::optional<double> forgetting_at(const accuracy_matrix& before, const evaluation_record& now);

} // namespace mneme
