/// outcome_store: caches outcomes of programs with several slices on disk, for later runs with the same jobs.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/base/non_owning.hpp"
#include "runtime/method/program.hpp"
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
namespace mneme {

/// One file per job, named by a digest of the outcome's inputs: the program, its tensors, the content of its rows and
/// its random stream. The processor's instruction set is part of the digest, too. A cached outcome never changes a
/// result. Safe for several threads and processes.
class outcome_store {
public:
  /// @param folder "": no outcome is found or stored
  /// @param on_damage called with the errors of each damaged file
  explicit outcome_store(std::filesystem::path folder = {}, std::function<void(const diagnostics&)> on_damage = {})
      : folder_(std::move(folder)), on_damage_(std::move(on_damage)) {}
  [[nodiscard]] bool is_open() const noexcept { return !folder_.empty(); }
  /// Returns the job's outcome. Returns null if the file is missing or damaged, or if its tensors differ from the
  /// program's declaration.
  [[nodiscard]] tensors_ref find(const program_job& job);
  /// Writes an outcome. Throws std::system_error with the file's name.
  void put(const program_job& job, const tensor_map& outcome);

private:
  [[nodiscard]] std::filesystem::path file_of(const program_job& job);
  /// Digest of a data set, computed once per data set.
  [[nodiscard]] digest128 content_of_rows(const std::shared_ptr<const dataset>& source);

  std::filesystem::path folder_;
  std::function<void(const diagnostics&)> on_damage_;
  std::mutex guard_;
  std::map<const dataset*, std::pair<weak_handle<const dataset>, digest128>> contents_; // only used for lookups
};

} // namespace mneme
