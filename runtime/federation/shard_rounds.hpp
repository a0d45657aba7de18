/// shard_rounds: the rounds at one shard, the jobs of their present stages, and which rounds its host owes an answer.
#pragma once
#include "runtime/federation/batch_planner.hpp"
#include "runtime/population/population.hpp"
#include <map>
#include <span>
namespace mneme {

/// Calls `then` with each round's jobs, which stand together.
template <class Jobs, class Then>
void each_round(Jobs& issued, Then then) {
  for (std::size_t first = 0, next = 0; first < issued.size(); first = next) {
    for (next = first; next < issued.size() && issued[next].id.assignment == issued[first].id.assignment;)
      ++next;
    then(std::span(issued).subspan(first, next - first));
  }
}

/// A value that follows what the shard was given and what its host has told; it asks nobody for anything.
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
    bool told = false;            ///< The host has told which jobs its present stage has.
    std::vector<kept_job> jobs{}; ///< Those of the present stage.
    std::size_t parked = 0;       ///< How many of them nobody has released.
    [[nodiscard]] std::uint32_t stage() const { return jobs.empty() ? 0 : jobs.front().issued.id.stage; }
    [[nodiscard]] std::uint32_t stages() const { return told ? stage() + 1 : 0; }
    /// The host has all that it needs to tell how the round goes on.
    [[nodiscard]] bool is_owed() const noexcept { return !told || parked == 0; }
  };

  /// @param clients outlives the rounds
  shard_rounds(shard_id shard, const population& clients) : shard_(shard), clients_(clients) {}

  [[nodiscard]] const std::map<assignment_id, kept_round>& by_id() const noexcept { return rounds_; }
  /// Null: it is not at the shard.
  [[nodiscard]] const kept_round* find(assignment_id id) const;
  /// How many rounds are owed.
  [[nodiscard]] std::size_t owed() const noexcept { return owed_; }
  /// All of them, as they were given.
  [[nodiscard]] start_rounds as_given() const;
  /// Jobs that have been released: their outcomes are lost with their host.
  [[nodiscard]] std::vector<parked_job> released_jobs() const;

  void start(const start_rounds& wave);
  /// The round is at the shard no more; nothing happens if it is not there.
  void end(assignment_id id);
  /// The jobs of these batches are released. @pre each is one of its round's present stage
  void release(const std::vector<composition>& batches);
  /// Rounds come to their next stages, with these jobs; fills in how long they take on the clients' devices.
  /// @param state parked, or released where the host has released them by itself
  void next_stage(std::vector<issued_job>& issued, job_state state);
  /// All that was released has run.
  void end_wave();
  /// What was released does not run at the host any more; the jobs themselves stay released.
  void forget_wave() noexcept { released_.clear(); }
  /// Another host asks for a job of the round's present stage, with a key of its own.
  void rekey(assignment_id id, std::size_t step, const issued_job& job);
  /// Counts them anew, after rounds were repeated.
  void count_owed();

private:
  shard_id shard_;
  const population& clients_;
  std::map<assignment_id, kept_round> rounds_;
  std::size_t owed_ = 0;
  std::vector<job_id> released_; // jobs that run at the host now
};

} // namespace mneme
