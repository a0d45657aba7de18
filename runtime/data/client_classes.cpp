#include "runtime/data/client_classes.hpp"
namespace mneme {

std::vector<std::int64_t> rows_by_class(const partition& split, const task_stream& tasks, client_id client,
                                        task_id task) {
  const auto classes = tasks.tasks.at(task.value).classes;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes.size()));
  for (const auto row : split.rows(client, task))
    ++counts.at(static_cast<std::size_t>(tasks.train->label(row) - classes.low));
  return counts;
}

std::vector<std::vector<std::int64_t>> rows_by_client_and_class(const partition& split, const task_stream& tasks,
                                                                std::int64_t clients) {
  std::vector<std::vector<std::int64_t>> counts(static_cast<std::size_t>(clients),
                                                std::vector<std::int64_t>(static_cast<std::size_t>(tasks.classes)));
  for (std::uint32_t c = 0; c < counts.size(); ++c)
    for (std::uint32_t t = 0; t < tasks.tasks.size(); ++t) {
      const auto of_task = rows_by_class(split, tasks, {c}, {t});
      for (std::size_t i = 0; i < of_task.size(); ++i)
        counts[c][static_cast<std::size_t>(tasks.tasks[t].classes.low) + i] += of_task[i];
    }
  return counts;
}

} // namespace mneme
