/// task_definition: which classes, domain and transform make up a task, before any row is looked at.
#pragma once
#include "runtime/data/task_stream.hpp"
namespace mneme {

struct task_definition {
  class_range positions{};    ///< Positions of its classes in the class order.
  class_range labels{};       ///< Counted over the run.
  std::int32_t domain = -1;   ///< -1: rows of all domains.
  std::int64_t transform = 0; ///< 0: identity.
};

/// One plan per task, at least one, or why the data set cannot be split as [tasks] says.
[[nodiscard]] expected<std::vector<task_definition>> plan_tasks(const scenario& from, const raw_data& data);

} // namespace mneme
