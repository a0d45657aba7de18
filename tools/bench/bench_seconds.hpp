/// bench_seconds: clocks for benchmarks, in seconds.
#pragma once
#include <ctime>
namespace mneme::bench {

inline double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
/// CPU time of all threads of this process, in user and kernel mode.
inline double cpu_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }
/// Monotonic time since a fixed but arbitrary point.
inline double wall_seconds() { return seconds_of(CLOCK_MONOTONIC); }

} // namespace mneme::bench
