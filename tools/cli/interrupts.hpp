/// Ctrl-C, or SIGTERM: the first asks the run to end, the second ends the process at once.
#pragma once
#include <atomic>
namespace mneme {

/// Installs the handler of both; returns what it counts in: 1 after the first signal.
[[nodiscard]] const std::atomic<int>& watch_interrupts();

} // namespace mneme
