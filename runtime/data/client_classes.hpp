/// client_classes: counts each client's training rows by class.
#pragma once
#include "runtime/data/partition.hpp"
namespace mneme {

/// Number of the client's rows in the task by class. Element 0 is the first class of the task.
[[nodiscard]] std::vector<std::int64_t> rows_by_class(const partition& split, const task_stream& tasks,
                                                      client_id client, task_id task);

/// [clients][classes] number of rows of all tasks.
[[nodiscard]] std::vector<std::vector<std::int64_t>>
rows_by_client_and_class(const partition& split, const task_stream& tasks, std::int64_t clients);

} // namespace mneme
