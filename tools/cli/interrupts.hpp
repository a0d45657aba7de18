/// interrupts: counts signals. The first Ctrl-C or SIGTERM asks the run to end, the second ends the process
/// immediately; SIGHUP asks to read the list of nodes again.
#pragma once
#include <atomic>
namespace mneme {

/// Installs the handler of SIGINT and SIGTERM; returns their counter.
[[nodiscard]] const std::atomic<int>& watch_interrupts();
/// Installs the handler of SIGHUP, which would otherwise end the process; returns its counter.
[[nodiscard]] const std::atomic<int>& watch_hangups();

} // namespace mneme
