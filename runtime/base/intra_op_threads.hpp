/// intra_op_threads: prevents LibTorch, OpenMP and MKL from splitting one operation over several threads.
#pragma once
namespace mneme {

/// Makes LibTorch run every operation of the calling thread on this thread alone, because sums that are split over
/// threads have different bits. Workers provide the parallelism. The setting is per thread: every computing thread must
/// call this before its first operation. Repeated calls are cheap.
void disable_intra_op_threads();

/// Calls disable_intra_op_threads() in a forked child of a process that may have computed. Must be called before
/// threads are started.
void compute_on_one_thread_after_fork();

/// Number of threads that OpenMP or MKL would use for an operation on the calling thread, whichever is larger.
[[nodiscard]] int intra_op_threads();

} // namespace mneme
