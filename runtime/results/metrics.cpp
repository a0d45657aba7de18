#include "runtime/results/metrics.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <numeric>
namespace mneme {
namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Mean over tasks t before the last task T of reference(t) - a[T][t].
template <class Reference>
double mean_loss(const accuracy_matrix& matrix, Reference reference) {
  const auto& last = matrix.rows.back();
  double sum = 0.0;
  for (std::size_t t = 0; t + 1 < last.size(); ++t)
    sum += reference(t) - last[t];
  return sum / static_cast<double>(last.size() - 1);
}

/// Best accuracy on task t after tasks t to end - 1.
double best(const accuracy_matrix& matrix, std::size_t t, std::size_t end) {
  double most = matrix.rows[t][t];
  for (std::size_t s = t; s < end; ++s)
    most = std::max(most, matrix.rows[s][t]);
  return most;
}

} // namespace

std::optional<double> forgetting_at(const accuracy_matrix& before, const evaluation_record& now) {
  const std::size_t tasks = now.task.value;
  if (tasks == 0 || before.rows.size() < tasks || now.accuracy_per_task.size() < tasks)
    return std::nullopt;
  double sum = 0.0;
  for (std::size_t t = 0; t < tasks; ++t)
    sum += best(before, t, tasks) - now.accuracy_per_task[t];
  return sum / static_cast<double>(tasks);
}

std::vector<reached_target> times_to(const std::vector<double>& targets,
                                     const std::vector<evaluation_record>& evaluations) {
  std::vector<reached_target> reached;
  for (const double target : targets) {
    reached.push_back({.accuracy = target});
    const auto first = std::find_if(evaluations.begin(), evaluations.end(),
                                    [&](const evaluation_record& evaluation) { return evaluation.accuracy >= target; });
    if (first != evaluations.end())
      reached.back().seconds = in_seconds(first->at);
  }
  return reached;
}

std::vector<double> deciles_of(std::vector<double> values) {
  std::vector<double> numbers;
  std::sort(values.begin(), values.end());
  for (std::size_t tenth = 1; !values.empty() && tenth < 10; ++tenth) {
    const auto steps = tenth * (values.size() - 1); // position in tenths of the distance between two neighbors
    const auto below = values[steps / 10], above = values[std::min(steps / 10 + 1, values.size() - 1)];
    numbers.push_back(below + (above - below) * static_cast<double>(steps % 10) / 10.0);
  }
  return numbers;
}

personal_accuracies personal_accuracies_of(const std::vector<client_test>& tests) {
  personal_accuracies over;
  std::vector<double> accuracies;
  for (const auto& test : tests) {
    if (test.test_rows == 0)
      continue;
    const auto percent = 100.0 / static_cast<double>(test.test_rows);
    over.before += percent * static_cast<double>(test.correct_before);
    accuracies.push_back(percent * static_cast<double>(test.correct));
  }
  over.clients = std::ssize(accuracies);
  if (over.clients > 0) {
    over.before /= static_cast<double>(over.clients);
    over.mean = mean(accuracies);
  }
  over.deciles = deciles_of(std::move(accuracies));
  return over;
}

void accuracy_matrix::add(const evaluation_record& end_of_task) {
  MNEME_CHECK(end_of_task.task.value == rows.size(), end_of_task.task.value, rows.size());
  MNEME_CHECK(end_of_task.accuracy_per_task.size() == rows.size() + 1, end_of_task.accuracy_per_task.size(),
              rows.size());
  rows.push_back(end_of_task.accuracy_per_task);
  pooled.push_back(end_of_task.accuracy);
}

continual_metrics metrics_of(const accuracy_matrix& matrix) {
  continual_metrics result;
  const auto tasks = matrix.rows.size(); // number of tasks
  if (tasks == 0)
    return result;
  std::vector<double> row_means;
  for (const auto& row : matrix.rows)
    row_means.push_back(mean(row));
  result.average_incremental_accuracy = mean(matrix.pooled);
  result.average_accuracy_task_mean = mean(row_means);
  result.final_accuracy = matrix.pooled.back();
  result.final_accuracy_task_mean = row_means.back();
  if (tasks == 1)
    return result; // no earlier task can be forgotten
  result.forgetting = mean_loss(matrix, [&](std::size_t t) { return best(matrix, t, tasks - 1); });
  result.forgetting_including_last = mean_loss(matrix, [&](std::size_t t) { return best(matrix, t, tasks); });
  result.forgetting_from_first = mean_loss(matrix, [&](std::size_t t) { return matrix.rows[t][t]; });
  result.backward_transfer = 0.0 - *result.forgetting_from_first; // avoids -0
  return result;
}

} // namespace mneme
