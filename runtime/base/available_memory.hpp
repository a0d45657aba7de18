/// available_memory: measures the memory that this process can still allocate.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
namespace mneme {

struct memory_budget {
  std::int64_t bytes = 0;
  std::string source{}; ///< "free on this machine" or "left below the limit of the control group /x".
};

/// Minimum of the machine's available memory (MemAvailable) and the free memory of its control groups (cgroup versions
/// 1 and 2), in bytes. Reclaimable file pages count as free. Returns a huge number if neither is available.
/// @param proc, groups mount points; tests pass other folders
[[nodiscard]] memory_budget available_memory(const std::filesystem::path& proc = "/proc",
                                             const std::filesystem::path& groups = "/sys/fs/cgroup");

} // namespace mneme
