/// context_warnings: what a scenario and its data allow, and a user may not expect.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/partition.hpp"
#include "runtime/data/task_stream.hpp"
namespace mneme {

/// A warning where classes do not divide evenly over the tasks and the scenario does not list sizes: names them.
[[nodiscard]] diagnostics uneven_task_warnings(const scenario& settings, const task_stream& stream);

/// A warning where training.drop_last leaves clients without a step: names how many clients in which task.
[[nodiscard]] diagnostics dropped_batch_warnings(const scenario& settings, const task_stream& stream,
                                                 const partition& split);

} // namespace mneme
