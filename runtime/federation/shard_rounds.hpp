/// shard_rounds: the rounds at one shard, the jobs of their current stages, and the rounds with a pending report.
#pragma once
#include "runtime/federation/batch_planner.hpp"
#include "runtime/population/population.hpp"
#include <map>
#include <span>
namespace mneme {

/// Calls then(jobs) for each round. @pre jobs of one round are adjacent
template <class Jobs, class Then>
void each_round(Jobs& issued, Then then) {
  for (std::size_t first = 0, next = 0; first < issued.size(); first = next) {
    for (next = first; next < issued.size() && issued[next].id.assignment == issued[first].id.assignment;)
      ++next;
    then(std::span(issued).subspan(first, next - first));
  }
}

/// A value that is updated from the shard's assignments and the host's reports. It sends no messages.
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
    bool is_reported = false;     ///< The host has reported the jobs of the current stage.
    std::vector<kept_job> jobs{}; ///< Jobs of the current stage.
    std::size_t parked = 0;       ///< Number of jobs that have not been released yet.
    [[nodiscard]] std::uint32_t stage() const { return jobs.empty() ? 0 : jobs.front().issued.id.stage; }
    [[nodiscard]] std::uint32_t stages() const { return is_reported ? stage() + 1 : 0; }
    /// True if the host can compute and report the next stage.
    [[nodiscard]] bool is_pending() const noexcept { return !is_reported || parked == 0; }
  };

  /// @param clients must outlive this object
  shard_rounds(shard_id shard, const population& clients) : shard_(shard), clients_(clients) {}

  [[nodiscard]] const std::map<assignment_id, kept_round>& by_id() const noexcept { return rounds_; }
  /// The round with this id. Returns null if it is not at the shard.
  [[nodiscard]] const kept_round* find(assignment_id id) const;
  /// Number of rounds with a pending report.
  [[nodiscard]] std::size_t pending() const noexcept { return pending_; }
  /// The start message of all rounds at the shard.
  [[nodiscard]] start_rounds as_given() const;
  /// Released jobs. Their results are lost if the host is lost.
  [[nodiscard]] std::vector<parked_job> released_jobs() const;

  /// Adds the rounds of a start message.
  void start(const start_rounds& wave);
  /// Removes a round; no effect if it is not at the shard.
  void end(assignment_id id);
  /// Marks the jobs of these batches as released. @pre each belongs to the current stage of its round
  void release(const std::vector<composition>& batches);
  /// Moves rounds to their next stages, and fills in the virtual durations of the jobs.
  /// @param state parked, or released if the host runs the jobs immediately
  void next_stage(std::vector<issued_job>& issued, job_state state);
  /// Marks all released jobs as run.
  void end_wave();
  /// Clears the list of running jobs after the loss of a host. The jobs stay marked as released.
  void clear_released() noexcept { released_.clear(); }
  /// Sets the fuse key of a job of the current stage, because another host may assign a different key.
  void set_fuse_key(assignment_id id, std::size_t step, const issued_job& job);
  /// Recounts the rounds with a pending report after a rerun.
  void recount_pending();

private:
  shard_id shard_;
  const population& clients_;
  std::map<assignment_id, kept_round> rounds_;
  std::size_t pending_ = 0;
  std::vector<job_id> released_; // released jobs that the host is running
};

} // namespace mneme
