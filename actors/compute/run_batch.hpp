/// run_batch: computes a batch of jobs, and how much there is to compute.
#pragma once
#include "runtime/training/executor.hpp"
#include <atomic>
namespace mneme {

/// Computes `jobs` and adds to `busy_ns` how long that took, for the report only. A failure, LibTorch's included, is a
/// text in the outcomes. @param watch is asked between the slices of programs; null: nobody is
[[nodiscard]] outcomes run_batch(const std::vector<job>& jobs, executor& on, std::atomic<std::int64_t>& busy_ns,
                                 slice_watch* watch = nullptr);

/// About how many multiplications a job takes, from its rows and the size of its net; infinite where that is not known
/// beforehand.
[[nodiscard]] double multiplications_of(const work& job);

} // namespace mneme
