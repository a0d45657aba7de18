/// available_memory: memory that this process can still allocate.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
namespace mneme {

struct memory_room {
  std::int64_t bytes = 0;
  std::string source{}; ///< "free on this machine", "left below the limit of the control group /x"
};

/// The minimum of the machine's available memory (MemAvailable) and of what the limits of its control groups (versions
/// 1 and 2) leave; file pages that can be dropped count as free. A huge number if neither is known.
/// @param proc, groups mount points; others for tests
[[nodiscard]] memory_room available_memory(const std::filesystem::path& proc = "/proc",
                                           const std::filesystem::path& groups = "/sys/fs/cgroup");

} // namespace mneme
