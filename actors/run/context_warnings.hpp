/// context_warnings: warnings about legal settings whose effect on tasks and clients may surprise the user.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/partition.hpp"
#include "runtime/data/task_stream.hpp"
namespace mneme {

/// Warns if classes do not divide evenly over the tasks and the scenario lists no sizes, if training.drop_last leaves
/// clients without a step, and if partition.file names rows that were drawn for the test.
/// @param split null: the partition has errors
[[nodiscard]] diagnostics context_warnings(const scenario& settings, const task_stream& stream, const partition* split);

} // namespace mneme
