/// slice_store: states of a run's unfinished programs, from which a resumed run continues.
#pragma once
#include "runtime/base/digest.hpp"
#include "runtime/method/program.hpp"
#include "runtime/storage/checkpoint_file.hpp"
#include <mutex>
namespace mneme {

/// State of a program between two slices.
struct slice_state {
  std::int64_t slices = 0; ///< Number of finished slices.
  tensor_map state{};
  void persist(archive& to) { to.section("slice")(slices)(state); }
};

/// Each state is stored under a digest of its job, and the job determines the state. A stored state therefore changes
/// no result, and its file may be older or newer than any checkpoint. Thread-safe.
class slice_store {
public:
  /// @param folder folder that holds only the file of states; empty: states are not written
  explicit slice_store(std::filesystem::path folder = {}, checkpoint_label label = {});
  /// Reads the states that an earlier process of the run wrote. Ignores a damaged file and one of another run.
  void load();
  /// Digest of a job's program, tensors, rows and stream. Reads all of these inputs, so a call is expensive.
  [[nodiscard]] static digest128 content_of(const program_job& job);

  /// True if the store has states.
  [[nodiscard]] bool holds_any() const;
  [[nodiscard]] std::optional<slice_state> find(const digest128& job) const;
  void put(const digest128& job, slice_state now);
  /// Removes the state of a finished job.
  void erase(const digest128& job);
  /// Writes all states, or removes the folder if there are none. Throws std::system_error with the file's name.
  void save();

private:
  [[nodiscard]] std::vector<std::pair<digest128, slice_state>> states() const;

  std::filesystem::path folder_;
  checkpoint_label label_;
  mutable std::mutex guard_;
  std::map<digest128, slice_state> states_;
  std::mutex writing_; // serializes save(), without blocking the other functions
};

} // namespace mneme
