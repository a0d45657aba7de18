/// outcome_store: what programs of several slices have made, for later runs that ask for the same.
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

/// A file of a folder for each job, named by all that its outcome follows from: the program, tensors, the content of
/// its rows, the stream, and the processor's instructions. Whether one is found changes no result. Safe to use from
/// several threads, and by several processes.
class outcome_store {
public:
  /// @param folder "": nothing is found, and nothing is kept
  /// @param on_damage told of each file that is not as it was written
  explicit outcome_store(std::filesystem::path folder = {}, std::function<void(const diagnostics&)> on_damage = {})
      : folder_(std::move(folder)), on_damage_(std::move(on_damage)) {}
  [[nodiscard]] bool is_open() const noexcept { return !folder_.empty(); }
  /// Null if there is no file, or none that is whole and holds what the program declares: then it is made anew.
  [[nodiscard]] tensors_ref find(const program_job& job);
  /// Throws std::system_error naming the file.
  void put(const program_job& job, const tensor_map& outcome);

private:
  [[nodiscard]] std::filesystem::path file_of(const program_job& job);
  /// All of a data set, taken once.
  [[nodiscard]] digest128 content_of_rows(const std::shared_ptr<const dataset>& source);

  std::filesystem::path folder_;
  std::function<void(const diagnostics&)> on_damage_;
  std::mutex guard_;
  std::map<const dataset*, std::pair<weak_handle<const dataset>, digest128>> contents_; // looked up only
};

} // namespace mneme
