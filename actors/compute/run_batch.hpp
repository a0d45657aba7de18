/// run_batch: computes a batch of jobs, and estimates its cost.
#pragma once
#include "runtime/training/executor.hpp"
#include <atomic>
namespace mneme {

/// Computes `jobs` and adds the computing time to `busy_ns`, which only the report uses. The outcome of a failed job is
/// its error text, even if LibTorch threw the exception. @param watch is called between the slices of programs; may be
/// null
[[nodiscard]] outcomes run_batch(const std::vector<job>& jobs, executor& on, std::atomic<std::int64_t>& busy_ns,
                                 slice_monitor* watch = nullptr);

/// Estimated number of multiplications of a job, from its rows and the size of its net. Returns infinity if unknown.
[[nodiscard]] double multiplications_of(const work& job);

} // namespace mneme
