/// context_warnings: warnings about valid settings that may affect tasks and clients in unexpected ways.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/partition.hpp"
#include "runtime/data/task_stream.hpp"
namespace mneme {

/// Warns in three cases: (1) classes do not divide evenly over the tasks, and the scenario lists no sizes; (2)
/// training.drop_last leaves clients without a training step; (3) partition.file lists rows that data.test_share moved
/// to the test split.
/// @param split null if the partition has errors
[[nodiscard]] diagnostics context_warnings(const scenario& settings, const task_stream& stream, const partition* split);

} // namespace mneme
