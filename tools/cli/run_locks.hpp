/// run_locks: prevents concurrent sweeps from computing the same run of a folder.
#pragma once
#include "runtime/base/atomic_file.hpp"
#include <filesystem>
#include <optional>
#include <string>
namespace mneme {

/// Locks one byte of a file per run. A lock is released explicitly, or when the last process forked from this one ends.
/// On file systems without locks, acquire() always succeeds.
class run_locks {
public:
  static constexpr const char* file_name = ".sweep.lock";

  /// @param folder folder of the runs. Throws std::system_error with the file name if the lock file cannot be opened.
  explicit run_locks(const std::filesystem::path& folder);
  /// Returns false if another sweep has locked the run. @param digest scenario digest, 32 hex digits
  [[nodiscard]] bool acquire(const std::string& digest);
  void release(const std::string& digest);

private:
  open_file file_;
};

} // namespace mneme
