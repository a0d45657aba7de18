/// task_definition: classes, domain and transform of a task, determined without reading rows.
#pragma once
#include "runtime/data/task_stream.hpp"
namespace mneme {

struct task_definition {
  class_range positions{};    ///< Positions of its classes in the class order.
  class_range labels{};       ///< Over the whole run.
  std::int32_t domain = -1;   ///< -1: rows of all domains.
  std::int64_t transform = 0; ///< 0: identity.
};

/// One definition per task, at least one. Fails if [tasks] does not fit the data set.
[[nodiscard]] expected<std::vector<task_definition>> plan_tasks(const scenario& from, const raw_data& data);

} // namespace mneme
