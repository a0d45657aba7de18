/// point_locks: distributes the runs of a folder among concurrent sweeps.
#pragma once
#include "runtime/base/atomic_file.hpp"
#include <filesystem>
#include <optional>
#include <string>
namespace mneme {

/// Locks single bytes of a file, one per run, until they are released or the last process forked from this one ends. On
/// file systems without locks, every run can be taken.
class point_locks {
public:
  static constexpr const char* file_name = ".sweep.lock";

  /// @param folder of the runs. Throws std::system_error with the file name if the lock file cannot be opened.
  explicit point_locks(const std::filesystem::path& folder);
  /// Returns false while another sweep has locked the run. @param digest scenario digest, 32 hex digits
  [[nodiscard]] bool take(const std::string& digest);
  void give_back(const std::string& digest);

private:
  open_file file_;
};

} // namespace mneme
