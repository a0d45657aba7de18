/// sandbox_start: starts the child process of a module sandbox.
#pragma once
#include "runtime/modules/module_sandbox.hpp"
#include <sys/types.h>
namespace mneme {

/// True if this process has one thread. Only then is a fork safe: the child may inherit no lock of another thread.
[[nodiscard]] bool has_one_thread();

/// Called in the child: makes the child end with its parent, and closes all descriptors above standard error.
void detach_from_parent();

/// Starts `program` as a sandbox process that shares no memory with this one. Returns its process id, or -1 with errno.
/// @param output descriptor that becomes the child's standard output
[[nodiscard]] pid_t exec_sandbox(const std::filesystem::path& program, std::span<const std::uint8_t> file,
                                 const sandbox_request& question, int output);

/// Forks a child that restricts itself, writes its answer to `output` and exits. Returns its process id, or -1 with
/// errno. Faster than exec_sandbox(), but the child begins with a copy of this process's memory.
/// @pre has_one_thread()
[[nodiscard]] pid_t fork_sandbox(std::span<const std::uint8_t> file, const sandbox_request& question, int output);

} // namespace mneme
