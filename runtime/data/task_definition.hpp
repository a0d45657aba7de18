/// task_definition: classes, domain and transform of a task, determined without reading rows.
#pragma once
#include "runtime/data/task_stream.hpp"
namespace mneme {

struct task_definition {
  class_range positions{};    ///< Range of its classes in the class order.
  class_range labels{};       ///< Range of its labels in the run.
  std::int32_t domain = -1;   ///< -1: all domains.
  std::int64_t transform = 0; ///< Index of its transform; 0: identity.
};

/// Returns a definition for each task, of which there is at least one. Fails if [tasks] does not match the data set.
[[nodiscard]] expected<std::vector<task_definition>> plan_tasks(const scenario& from, const raw_data& data);

} // namespace mneme
