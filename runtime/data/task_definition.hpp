/// task_definition: classes, domain and transform of a task, determined without reading rows.
#pragma once
#include "runtime/data/task_stream.hpp"
namespace mneme {

struct task_definition {
  class_range positions{};    ///< Range of the task's classes in the class order.
  class_range labels{};       ///< Range of the task's labels in the run.
  std::int32_t domain = -1;   ///< Number of the domain; -1: all domains.
  std::int64_t transform = 0; ///< Index of the task's transform; 0: identity.
};

/// Returns one definition per task; there is at least one. Fails if [tasks] does not match the data set.
[[nodiscard]] expected<std::vector<task_definition>> plan_tasks(const scenario& from, const raw_data& data);

} // namespace mneme
