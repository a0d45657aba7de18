// Deciles over clients of the predictor's accuracy. Clients have no test rows, so the server's test rows are weighted:
// the weight of each (task, class) is the share of the client's training rows in it.
#include "actors/parties/server.hpp"
#include "runtime/base/tuning.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {
namespace {

/// Test rows of a task by class. Element 0 belongs to the first class of the task.
std::vector<std::vector<std::int64_t>> rows_by_class(const task_stream& tasks, const task_rows& task) {
  std::vector<std::vector<std::int64_t>> rows(static_cast<std::size_t>(task.classes.size()));
  for (const auto row : task.test)
    rows.at(static_cast<std::size_t>(tasks.test->label(row) - task.classes.low)).push_back(row);
  return rows;
}

} // namespace

caf::result<fairness> server_state::measure() {
  const auto& tasks = *context_->tasks;
  const auto learned = party_.half().predict();
  auto answer = self_->make_response_promise<fairness>(); // made after the calls that may throw
  plan jobs;
  std::vector<std::size_t> cell_of; // by job: index of its (task, class) pair
  std::size_t cells = 0;
  for (const auto& task : tasks.tasks)
    for (const auto& rows : rows_by_class(tasks, task)) {
      for (std::size_t first = 0; first < rows.size(); first += tuning::evaluation_rows) {
        const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
        const auto last = std::min(rows.size(), first + tuning::evaluation_rows);
        const auto end = rows.begin() + static_cast<std::ptrdiff_t>(last);
        const sample_view chunk{.source = tasks.test,
                                .rows = std::make_shared<const std::vector<std::int64_t>>(begin, end)};
        jobs.push_back(evaluate_job{.learned = learned, .samples = chunk, .mask = {0, tasks.classes}});
        cell_of.push_back(cells);
      }
      ++cells;
    }
  if (jobs.empty()) {
    answer.deliver(fairness{});
    return answer;
  }
  party_.steps().run_all(std::move(jobs), [this, answer, cell_of, cells](outcomes results) mutable {
    std::vector<evaluate_output> sums(cells);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (auto* reason = std::get_if<std::string>(&results[i]))
        return answer.deliver(caf::make_error(run_errc::server_failed, "server, evaluation: " + *reason));
      const auto& part = std::get<evaluate_output>(std::get<work_output>(results[i]));
      sums[cell_of[i]].rows += part.rows;
      sums[cell_of[i]].correct += part.correct;
    }
    answer.deliver(fairness{deciles_of(client_accuracies(sums))});
  });
  return answer;
}

/// Accuracy in percent of every client that has rows of tested classes.
std::vector<double> server_state::client_accuracies(const std::vector<evaluate_output>& cells) const {
  const auto& tasks = *context_->tasks;
  std::vector<double> accuracies;
  for (std::uint32_t c = 0; c < context_->population->size(); ++c) {
    double sum = 0.0;
    std::int64_t rows = 0;
    std::size_t first_cell = 0;
    for (std::uint32_t t = 0; t < tasks.tasks.size(); ++t) {
      const auto& classes = tasks.tasks[t].classes;
      for (const auto row : context_->rows->held({c}, {t})) {
        const auto& cell = cells.at(first_cell + static_cast<std::size_t>(tasks.train->label(row) - classes.low));
        if (cell.rows == 0)
          continue;
        sum += static_cast<double>(cell.correct) / static_cast<double>(cell.rows);
        ++rows;
      }
      first_cell += static_cast<std::size_t>(classes.size());
    }
    if (rows > 0)
      accuracies.push_back(100.0 * sum / static_cast<double>(rows));
  }
  return accuracies;
}

} // namespace mneme
