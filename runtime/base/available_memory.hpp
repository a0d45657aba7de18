/// available_memory: how much more memory this process can have, as far as the system says.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
namespace mneme {

struct memory_room {
  std::int64_t bytes = 0;
  std::string source{}; ///< "free on this machine", "left below the limit of the control group /x"
};

/// The least of what the machine has (MemAvailable) and what limits of control groups leave, those around the process's
/// own included; of both versions of control groups, and pages of files that can be dropped counted as free. Without
/// either, more than any process can have.
/// @param proc, groups where the system shows these; others for tests
[[nodiscard]] memory_room available_memory(const std::filesystem::path& proc = "/proc",
                                           const std::filesystem::path& groups = "/sys/fs/cgroup");

} // namespace mneme
