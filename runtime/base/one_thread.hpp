/// one_thread: keeps LibTorch, OpenMP and MKL from splitting one operation over threads.
#pragma once
namespace mneme {

/// From now on the calling thread runs every LibTorch operation alone. LibTorch and MKL keep the number of threads per
/// calling thread, so every computing thread must call this before its first operation; repeated calls are cheap.
/// Workers provide parallelism; sums split over threads have other bits.
void compute_on_one_thread();

/// Likewise in a forked process whose parent may have computed, before it starts threads.
void compute_on_one_thread_after_fork();

/// Number of threads that OpenMP or MKL would use for an operation of the calling thread; the larger of both.
[[nodiscard]] int threads_of_an_operation();

} // namespace mneme
