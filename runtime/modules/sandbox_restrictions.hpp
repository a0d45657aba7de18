/// sandbox_restrictions: permanently restricts the calling process (seccomp and rlimits).
#pragma once
#include <cstdint>
#include <string>
namespace mneme {

/// Resource limits of a process that probes a module.
struct sandbox_limits {
  std::int64_t seconds = 0;      ///< Processor time in seconds, including the time already used.
  std::int64_t memory_bytes = 0; ///< Address space in bytes, in addition to the space in use at the time of the call.
};

/// Restricts the calling process for the rest of its life. It may compute, allocate memory and write to the open file
/// descriptors 1 and 2. It may not open files or sockets, start processes or threads, or send signals. A denied call
/// writes "!" and the system call's number to descriptor 1 and exits with `denied_exit_code`. Needs no privileges.
/// Returns "" on success. If the kernel does not support the filter, returns the reason, and only the limits apply.
[[nodiscard]] std::string restrict_process(const sandbox_limits& limits);

constexpr int denied_exit_code = 97;

} // namespace mneme
