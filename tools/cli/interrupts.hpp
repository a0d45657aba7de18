/// interrupts: signals as numbers that count them. The first Ctrl-C, or SIGTERM, asks the run to end, and the second
/// ends the process at once; SIGHUP asks to read a list of nodes again.
#pragma once
#include <atomic>
namespace mneme {

/// Installs the handler of both; returns what it counts in: 1 after the first signal.
[[nodiscard]] const std::atomic<int>& watch_interrupts();
/// Installs a handler of SIGHUP, which else ends the process; returns what it counts in.
[[nodiscard]] const std::atomic<int>& watch_hangups();

} // namespace mneme
