/// rerun: assignments that run again from their beginning, up to where they were: a client's round is a pure function.
#pragma once
#include "runtime/federation/batch_planner.hpp"
#include <limits>
#include <map>
namespace mneme {

/// Results that were evicted, rounds that a checkpoint names and rounds of a shard whose host was lost run again in the
/// same way: jobs of rounds that are behind run at once, those for which the others wait now are kept until all have
/// come to where they were.
class rerun {
public:
  /// To its result, however many stages it has.
  static constexpr std::uint32_t to_result = std::numeric_limits<std::uint32_t>::max();

  /// It begins again. @param stages whose jobs it had asked for before; with 0 it is never behind
  void add(assignment_id id, std::uint32_t stages);
  void clear() noexcept { rounds_.clear(); }
  [[nodiscard]] bool is_empty() const noexcept { return rounds_.empty(); }
  [[nodiscard]] bool has(assignment_id id) const { return rounds_.contains(id); }
  /// Ascending.
  [[nodiscard]] std::vector<assignment_id> ids() const;

  /// It waits for the outcomes of these jobs, which are those of one stage.
  void waits_for(std::vector<parked_job> jobs);
  /// It has its result, or has failed.
  void ended(assignment_id id);

  /// How many stages it has asked for so far.
  [[nodiscard]] std::uint32_t stages_of(assignment_id id) const;
  /// It has not come to where it was.
  [[nodiscard]] bool is_behind(assignment_id id) const;
  [[nodiscard]] bool has_ended(assignment_id id) const;
  /// The jobs of all that are behind, which run now. None: all have come to where they were.
  [[nodiscard]] std::vector<parked_job> take_behind();
  /// The jobs for which it waits; none where it has ended.
  [[nodiscard]] std::vector<parked_job>& jobs_of(assignment_id id) { return rounds_.at(id).jobs; }

private:
  struct repeated_round {
    std::uint32_t stages_before = 0, stages = 0;
    bool has_ended = false;
    std::vector<parked_job> jobs{}; // for which it waits
    [[nodiscard]] bool is_behind() const noexcept { return !has_ended && stages < stages_before; }
  };
  std::map<assignment_id, repeated_round> rounds_;
};

} // namespace mneme
