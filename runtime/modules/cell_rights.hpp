/// cell_rights: a process gives up what it may do, for good.
#pragma once
#include <cstdint>
#include <string>
namespace mneme {

/// Limits of a process that tries a module.
struct cell_limits {
  std::int64_t seconds = 0;      ///< Processor time, its own start included.
  std::int64_t memory_bytes = 0; ///< Addresses, besides those that it has taken already.
};

/// From here on the calling process computes, takes and returns memory, and writes to the files 1 and 2, which are
/// open: it opens no file or socket, starts no process or thread, and sends no signal. A try is written to file 1, "!"
/// and the number of the system call, and ends the process with exit code `denied_exit_code`. It needs no privileges.
/// Returns "" or why the machine does not permit it, in words; then the limits alone hold.
[[nodiscard]] std::string give_up_rights(const cell_limits& limits);

constexpr int denied_exit_code = 97;

} // namespace mneme
