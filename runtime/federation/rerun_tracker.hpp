/// rerun_tracker: tracks assignments that run again from the beginning, up to the stage that they had reached.
#pragma once
#include "runtime/federation/batch_planner.hpp"
#include <limits>
#include <map>
namespace mneme {

/// Used for evicted results, rounds of a checkpoint, and rounds of a shard whose host was lost. Jobs of rounds that
/// have not reached their earlier stage run first. Jobs of rounds that have caught up stay parked until all have caught
/// up.
class rerun_tracker {
public:
  /// Number of stages for a rerun that continues until the result is available.
  static constexpr std::uint32_t to_result = std::numeric_limits<std::uint32_t>::max();

  /// Starts the rerun of an assignment. @param stages number of stages that it had reached; 0: it has nothing to catch
  /// up
  void add(assignment_id id, std::uint32_t stages);
  void clear() noexcept { rounds_.clear(); }
  [[nodiscard]] bool is_empty() const noexcept { return rounds_.empty(); }
  [[nodiscard]] bool has(assignment_id id) const { return rounds_.contains(id); }
  /// Ids of the assignments being rerun, ascending.
  [[nodiscard]] std::vector<assignment_id> ids() const;

  /// Records the jobs of the stage that the assignment has reached in this rerun. @param jobs jobs of one stage
  void waits_for(std::vector<parked_job> jobs);
  /// Records that the assignment has its result or has failed.
  void ended(assignment_id id);

  /// Number of stages that the assignment has reached in this rerun.
  [[nodiscard]] std::uint32_t stages_of(assignment_id id) const;
  /// True if the assignment has not reached its earlier stage yet.
  [[nodiscard]] bool is_lagging(assignment_id id) const;
  /// True if the assignment has its result or has failed.
  [[nodiscard]] bool has_ended(assignment_id id) const;
  /// Removes and returns the jobs of all assignments that have not caught up. Empty if all have caught up.
  [[nodiscard]] std::vector<parked_job> take_lagging();
  /// Jobs of the assignment's current stage; empty if it has ended.
  [[nodiscard]] std::vector<parked_job>& jobs_of(assignment_id id) { return rounds_.at(id).jobs; }

private:
  struct repeated_round {
    std::uint32_t stages_before = 0, stages = 0;
    bool has_ended = false;
    std::vector<parked_job> jobs{}; // jobs of the current stage
    [[nodiscard]] bool is_lagging() const noexcept { return !has_ended && stages < stages_before; }
  };
  std::map<assignment_id, repeated_round> rounds_;
};

} // namespace mneme
