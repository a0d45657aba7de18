/// rerun: assignments that run again from the beginning, up to the stage they had reached.
#pragma once
#include "runtime/federation/batch_planner.hpp"
#include <limits>
#include <map>
namespace mneme {

/// Serves evicted results, rounds of a checkpoint, and rounds of a shard whose host was lost. Jobs of rounds that are
/// behind run first. Jobs for which a caught-up round waits are held until all rounds have caught up.
class rerun {
public:
  /// Number of stages that means: to the result, whatever the number of stages.
  static constexpr std::uint32_t to_result = std::numeric_limits<std::uint32_t>::max();

  /// Starts the rerun of an assignment. @param stages that it had reached before; with 0 it is never behind
  void add(assignment_id id, std::uint32_t stages);
  void clear() noexcept { rounds_.clear(); }
  [[nodiscard]] bool is_empty() const noexcept { return rounds_.empty(); }
  [[nodiscard]] bool has(assignment_id id) const { return rounds_.contains(id); }
  /// Ids being rerun, ascending.
  [[nodiscard]] std::vector<assignment_id> ids() const;

  /// The assignment waits for these jobs of one stage.
  void waits_for(std::vector<parked_job> jobs);
  /// The assignment has its result or has failed.
  void ended(assignment_id id);

  /// Number of stages it has requested in this rerun.
  [[nodiscard]] std::uint32_t stages_of(assignment_id id) const;
  /// True if it has not reached its earlier stage.
  [[nodiscard]] bool is_behind(assignment_id id) const;
  [[nodiscard]] bool has_ended(assignment_id id) const;
  /// Removes and returns the jobs of all assignments that are behind. Empty if all have caught up.
  [[nodiscard]] std::vector<parked_job> take_behind();
  /// Jobs for which the assignment waits; empty if it has ended.
  [[nodiscard]] std::vector<parked_job>& jobs_of(assignment_id id) { return rounds_.at(id).jobs; }

private:
  struct repeated_round {
    std::uint32_t stages_before = 0, stages = 0;
    bool has_ended = false;
    std::vector<parked_job> jobs{}; // jobs for which it waits
    [[nodiscard]] bool is_behind() const noexcept { return !has_ended && stages < stages_before; }
  };
  std::map<assignment_id, repeated_round> rounds_;
};

} // namespace mneme
