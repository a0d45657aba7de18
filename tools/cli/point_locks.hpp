/// point_locks: which runs of a folder a sweep has taken on, so that sweeps that go on at once share them out.
#pragma once
#include "runtime/base/atomic_file.hpp"
#include <filesystem>
#include <optional>
#include <string>
namespace mneme {

/// Holds locks upon single bytes of a file, one for each run, until they are given back or the last process that was
/// forked since ends, however it ends. Where files cannot be locked, all are free.
class point_locks {
public:
  static constexpr const char* file_name = ".sweep.lock";

  /// @param folder of the runs; throws std::system_error naming the file where it cannot be opened
  explicit point_locks(const std::filesystem::path& folder);
  /// False while another sweep works on the run. @param digest that of its scenario, 32 hex digits
  [[nodiscard]] bool take(const std::string& digest);
  void give_back(const std::string& digest);

private:
  open_file file_;
};

} // namespace mneme
