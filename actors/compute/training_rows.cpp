#include "actors/compute/training_rows.hpp"
#include <algorithm>
namespace mneme {

sample_view training_rows::of_task(task_id task) const { return view_of(run_.tasks->tasks[task.value].train); }

sample_view training_rows::of_enrolled(task_id task) const {
  std::vector<std::int64_t> rows;
  for (std::uint32_t c = 0; c < run_.population->size(); ++c) {
    if (run_.rows->size({c}, task) == 0)
      continue;
    const auto own = run_.rows->view({c}, task);
    rows.insert(rows.end(), own.rows->begin(), own.rows->end());
  }
  std::sort(rows.begin(), rows.end());
  return view_of(std::move(rows));
}

sample_view training_rows::of_public(task_id task) const { return view_of(run_.tasks->tasks[task.value].public_rows); }

sample_view training_rows::view_of(std::vector<std::int64_t> rows) const {
  return {.source = run_.tasks->train, .rows = std::make_shared<const std::vector<std::int64_t>>(std::move(rows))};
}

} // namespace mneme
