/// one_thread: keeps LibTorch, OpenMP and MKL from cutting one operation among threads.
#pragma once
namespace mneme {

/// From here on the calling thread computes every operation of LibTorch by itself. LibTorch's and MKL's number of
/// threads belongs to the thread that sets it, so each thread that computes has to call this before its first
/// operation; later calls cost next to nothing. Parallelism comes from workers, and sums cut among threads have other
/// bits.
void compute_on_one_thread();

/// The same in a process that was forked from one which may have computed, before it starts threads of its own.
void compute_on_one_thread_after_fork();

/// How many threads OpenMP or MKL would use for an operation of the calling thread, whichever is more.
[[nodiscard]] int threads_of_an_operation();

} // namespace mneme
