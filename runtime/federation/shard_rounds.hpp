/// shard_rounds: rounds at one shard, jobs of their current stages, and the rounds whose report is pending.
#pragma once
#include "runtime/federation/batch_planner.hpp"
#include "runtime/population/population.hpp"
#include <map>
#include <span>
namespace mneme {

/// Calls `then` with the jobs of each round; jobs of one round must be adjacent.
template <class Jobs, class Then>
void each_round(Jobs& issued, Then then) {
  for (std::size_t first = 0, next = 0; first < issued.size(); first = next) {
    for (next = first; next < issued.size() && issued[next].id.assignment == issued[first].id.assignment;)
      ++next;
    then(std::span(issued).subspan(first, next - first));
  }
}

/// A value that follows the shard's assignments and the host's reports. It sends no messages.
class shard_rounds {
public:
  enum class job_state : std::uint8_t { parked, released, run };
  struct kept_job {
    issued_job issued{};
    job_state state = job_state::parked;
  };
  struct kept_round {
    assignment given{};
    virtual_time ready{};
    bool told = false;            ///< The host has reported the jobs of the current stage.
    std::vector<kept_job> jobs{}; ///< Of the current stage.
    std::size_t parked = 0;       ///< Number of jobs that are not released.
    [[nodiscard]] std::uint32_t stage() const { return jobs.empty() ? 0 : jobs.front().issued.id.stage; }
    [[nodiscard]] std::uint32_t stages() const { return told ? stage() + 1 : 0; }
    /// True if the host has everything it needs to report the next stage.
    [[nodiscard]] bool is_owed() const noexcept { return !told || parked == 0; }
  };

  /// @param clients must outlive this object
  shard_rounds(shard_id shard, const population& clients) : shard_(shard), clients_(clients) {}

  [[nodiscard]] const std::map<assignment_id, kept_round>& by_id() const noexcept { return rounds_; }
  /// Null if the round is not at the shard.
  [[nodiscard]] const kept_round* find(assignment_id id) const;
  /// Number of rounds whose report is pending.
  [[nodiscard]] std::size_t owed() const noexcept { return owed_; }
  /// All rounds at the shard, as they were assigned.
  [[nodiscard]] start_rounds as_given() const;
  /// Released jobs; their results are lost with the host.
  [[nodiscard]] std::vector<parked_job> released_jobs() const;

  void start(const start_rounds& wave);
  /// Removes a round; no effect if it is not at the shard.
  void end(assignment_id id);
  /// Marks the jobs of these batches as released. @pre each belongs to the current stage of its round
  void release(const std::vector<composition>& batches);
  /// Moves rounds to their next stages with these jobs, and fills in the durations on the clients' devices.
  /// @param state parked, or released if the host has released them itself
  void next_stage(std::vector<issued_job>& issued, job_state state);
  /// All released jobs have run.
  void end_wave();
  /// Released jobs no longer run at the host; they stay marked as released.
  void forget_wave() noexcept { released_.clear(); }
  /// Another host requests a job of the round's current stage under its own key.
  void rekey(assignment_id id, std::size_t step, const issued_job& job);
  /// Recounts the pending rounds after a rerun.
  void count_owed();

private:
  shard_id shard_;
  const population& clients_;
  std::map<assignment_id, kept_round> rounds_;
  std::size_t owed_ = 0;
  std::vector<job_id> released_; // jobs that the host is running
};

} // namespace mneme
