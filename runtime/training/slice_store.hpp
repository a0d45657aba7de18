/// slice_store: how far the programs of a run have come, for a process that goes on with it.
#pragma once
#include "runtime/base/digest.hpp"
#include "runtime/method/program.hpp"
#include "runtime/storage/checkpoint_file.hpp"
#include <mutex>
namespace mneme {

/// A program between two slices.
struct slice_state {
  std::int64_t slices = 0; ///< That are over.
  tensor_map state{};
  void persist(archive& to) { to.section("slice")(slices)(state); }
};

/// What a program makes follows from its job alone, and so do its states: they are kept by the content of the job, no
/// result depends on whether one is found, and a file of them may be older or newer than any checkpoint. Safe to use
/// from several threads.
class slice_store {
public:
  /// @param folder for its file, besides which it holds nothing; empty: states are not written
  explicit slice_store(std::filesystem::path folder = {}, checkpoint_label label = {});
  /// Reads what an earlier process of the run has left; nothing, if that is not whole or not of this run.
  void load();
  /// The content of a job: its program, tensors, rows and stream. It reads all of them, so it is not for every job.
  [[nodiscard]] static digest128 content_of(const program_job& job);

  /// True if there is anything to find.
  [[nodiscard]] bool holds_any() const;
  [[nodiscard]] std::optional<slice_state> find(const digest128& job) const;
  void put(const digest128& job, slice_state now);
  /// The job has ended.
  void erase(const digest128& job);
  /// Writes all states; of an empty store, removes the file. Throws std::system_error naming the file.
  void save();

private:
  [[nodiscard]] std::vector<std::pair<digest128, slice_state>> states() const;

  std::filesystem::path folder_;
  checkpoint_label label_;
  mutable std::mutex guard_;
  std::map<digest128, slice_state> states_;
  std::mutex writing_; // one file at a time, and nobody who computes waits for it
};

} // namespace mneme
