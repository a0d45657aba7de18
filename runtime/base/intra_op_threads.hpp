/// intra_op_threads: prevents LibTorch, OpenMP and MKL from splitting one operation over several threads.
#pragma once
namespace mneme {

/// Makes the calling thread run every LibTorch operation alone. The setting is per thread, so every computing thread
/// must call this before its first operation; repeated calls are cheap. Workers provide the parallelism instead,
/// because sums split over threads have other bits.
void disable_intra_op_threads();

/// disable_intra_op_threads() for a forked child of a process that may have computed. Call it before starting threads.
void compute_on_one_thread_after_fork();

/// Number of threads that OpenMP or MKL would use for an operation on the calling thread; the larger of both.
[[nodiscard]] int intra_op_threads();

} // namespace mneme
