/// in_flight_table: the assignments in flight, and the choice of the jobs that run next.
#pragma once
#include "runtime/base/assignment_table.hpp"
#include "runtime/federation/activities.hpp"
#include "runtime/federation/batch_planner.hpp"
#include "runtime/population/population.hpp"
#include <c10/util/SmallVector.h>
#include <functional>
namespace mneme {

/// Computing state of a client's round.
enum class assignment_phase : std::uint8_t {
  waiting,   ///< Queued, not yet sent to its shard.
  computing, ///< Sent to its shard.
  rerunning, ///< The shard reruns the round up to the stage that it had reached.
  finished,  ///< The result stays in memory until its virtual time.
  evicted,   ///< The result was evicted. It is recomputed when the upload arrives in virtual time.
};

/// One client's work on one broadcast, from dispatch to delivery.
struct assignment_in_flight {
  assignment_id id{};
  client_id client{};
  round_id round{};
  task_id task{};
  activity_id activity_kind{};
  broadcast_ref in{}; ///< The broadcast; with the client's memory and visit, it determines the round.
  assignment_phase phase = assignment_phase::waiting;
  bool drops_out = false;           ///< The client drops out in its first stage, so none of its jobs is needed.
  bool upload_size_known = false;   ///< The round is one job, and `upload_bytes` is known before it runs.
  bool is_uploading = false;        ///< The assignment's event in the queue is an arrival.
  std::uint64_t event_sequence = 0; ///< Sequence number of the assignment's event; later events have higher numbers.
  std::size_t stages_reached = 0;   ///< Number of stages that have ended in virtual time.
  virtual_time horizon{};           ///< End of the last known stage; initially the planned end of the download.
  /// Extra download time that is not included in `horizon`, because transfers share the server's link.
  virtual_duration delay{0};
  std::uint32_t visit = 0; ///< Index of the client's visit; not saved.
  // For uploads over a shared link of the server:
  virtual_time upload_arrives = never;            ///< `never` while the transfer is in progress.
  bool waits_for_link = false;                    ///< All parties except the server have received their parts.
  party_bytes sends{};                            ///< Bytes for each party.
  virtual_duration upload_takes{-1};              ///< Cache for planned_upload_time(); -1: empty; not saved.
  std::int64_t held_bytes = 0;                    ///< Bytes of the assignment's results that are computed ahead.
  client_result result{};                         ///< Valid only in phase finished.
  c10::SmallVector<virtual_duration, 2> stages{}; ///< Duration of each known stage.

  /// Returns false if a rerun stage has another duration than before. The checkpoint then belongs to another run.
  [[nodiscard]] bool matches_duration(std::uint32_t stage, virtual_duration duration) const noexcept;
  /// Records the duration of a new stage, or confirms the duration of a rerun stage. Returns the due time of the
  /// stage's jobs.
  virtual_time set_duration(std::uint32_t stage, virtual_duration duration);
  /// End of the download if no other transfer used the link. Stages may be known before the download ends.
  [[nodiscard]] virtual_time planned_download_end() const noexcept;
  /// Times of the assignment's events, from the end of the last stage back to the event in the queue. Empty if that
  /// event is the arrival of the upload. @pre all stages are known
  [[nodiscard]] c10::SmallVector<virtual_time, 4> stage_events() const;
  /// Bytes of the upload's part for the server.
  [[nodiscard]] std::int64_t upload_bytes() const noexcept { return sends[index_of(party_id::server)]; }
  [[nodiscard]] std::int64_t& upload_bytes() noexcept { return sends[index_of(party_id::server)]; }
  /// Virtual time at which the upload starts. @pre all stages are known
  [[nodiscard]] virtual_time sent_at() const noexcept { return add_saturating(horizon, delay); }
  /// The transfer to a party. @pre all stages are known
  [[nodiscard]] transfer sent_to(party_id who) const noexcept {
    return {.client = client, .bytes = sends[index_of(who)], .begins = sent_at(), .visit = visit};
  }
  /// Duration of the upload if it starts at `horizon`. Sharing the link can only increase this duration. Cached,
  /// because each computation draws the device's speed. @pre upload_bytes() and all stages are known
  [[nodiscard]] virtual_duration planned_upload_time(const population& clients) {
    if (upload_takes.count() < 0)
      upload_takes =
          clients.devices().upload_time({.client = client, .bytes = upload_bytes(), .begins = horizon, .visit = visit});
    return upload_takes;
  }
  /// Duration of the upload. @pre upload_bytes() and all stages are known, and the download has ended
  [[nodiscard]] virtual_duration upload_time(const population& clients) {
    return delay.count() > 0 ? clients.devices().upload_time(sent_to(party_id::server)) : planned_upload_time(clients);
  }
  [[nodiscard]] bool uploads() const noexcept { return row_of(activity_kind).uploads(); }
  /// True if virtual time can advance to the next event of this assignment. Activities without an upload need their
  /// result for the last event.
  [[nodiscard]] bool reply_arrived() const noexcept {
    return stages_reached < stages.size() || (uploads() ? has_had_result() : has_result()) ||
           (upload_size_known && !stages.empty());
  }
  /// True if all stages have ended in virtual time and the activity has no upload.
  [[nodiscard]] bool ends_without_upload() const noexcept { return !uploads() && stages_reached == stages.size(); }
  [[nodiscard]] bool has_result() const noexcept { return phase == assignment_phase::finished; }
  [[nodiscard]] bool has_had_result() const noexcept { return phase >= assignment_phase::finished; }
  [[nodiscard]] bool is_at_shard() const noexcept {
    return phase == assignment_phase::computing || phase == assignment_phase::rerunning;
  }
};

/// All assignments in flight and their parked jobs. Query results depend only on state in virtual time, never on the
/// order of reports.
class in_flight_table {
public:
  using may_run = std::function<bool(const assignment_in_flight&, virtual_time due)>;

  /// Adds an assignment. add() and erase() invalidate references to all assignments.
  assignment_in_flight& add(assignment_in_flight&& added);
  [[nodiscard]] assignment_in_flight& at(assignment_id id) { return assignments_.at(id); }
  [[nodiscard]] assignment_in_flight* find(assignment_id id) { return assignments_.find(id); }
  void erase(assignment_id id);
  [[nodiscard]] std::size_t size() const noexcept { return assignments_.size(); }
  /// Ids of the assignments in flight, ascending.
  [[nodiscard]] std::vector<assignment_id> ids() const { return assignments_.ids(); }

  /// Adds `bytes` of a result computed ahead to the budget.
  void hold(assignment_in_flight& owner, std::int64_t bytes);
  /// Removes the assignment's results from the budget.
  void release_outcomes(assignment_in_flight& owner);

  /// Adds jobs that are parked at their shards.
  void park(std::vector<parked_job> jobs);
  /// Removes the parked jobs of a failed round.
  void forget_jobs(assignment_in_flight& owner);
  /// Removes and returns the parked jobs to run now: all jobs of `top`, then others in due order. The others must keep
  /// the held results within `held_max` bytes, and `agrees` must return true for them.
  [[nodiscard]] std::vector<parked_job> take_runnable(assignment_id top, std::int64_t held_max, const may_run& agrees);

private:
  void sort_by_due(assignment_id top);

  assignment_table<assignment_in_flight> assignments_;
  std::vector<parked_job> parked_;
  std::int64_t held_bytes_ = 0;
};

} // namespace mneme
