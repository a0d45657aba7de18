/// interrupts: counts signals. The first Ctrl-C or SIGTERM requests the end of the run, the second ends the process
/// immediately.
#pragma once
#include <atomic>
namespace mneme {

/// Installs the handler of SIGINT and SIGTERM; returns their counter.
[[nodiscard]] const std::atomic<int>& watch_interrupts();

} // namespace mneme
