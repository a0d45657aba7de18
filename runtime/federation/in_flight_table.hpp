/// in_flight_table: the assignments in flight, their state, and the choice of the jobs that run next.
#pragma once
#include "runtime/base/assignment_table.hpp"
#include "runtime/federation/activities.hpp"
#include "runtime/federation/batch_planner.hpp"
#include "runtime/population/population.hpp"
#include <c10/util/SmallVector.h>
#include <functional>
namespace mneme {

/// State of a client's round, as far as computing is concerned.
enum class assignment_phase : std::uint8_t {
  waiting,   ///< Queued; its shard has not received it.
  computing, ///< At its shard.
  repeating, ///< Rerunning at its shard, up to the stage it had reached.
  finished,  ///< Its result is in memory and waits for its virtual time.
  evicted,   ///< Its result was evicted and is recomputed when it arrives in virtual time.
};

/// One client's work on one broadcast, from dispatch to delivery.
struct assignment_in_flight {
  assignment_id id{};
  client_id client{};
  round_id round{};
  task_id task{};
  activity_id doing{};
  broadcast_ref in{}; ///< With the client's memory and visits: the whole assignment.
  assignment_phase phase = assignment_phase::waiting;
  bool drops_out = false;           ///< During its first stage: none of its jobs is ever needed.
  bool upload_size_known = false;   ///< Its round is one job, and `upload_bytes` is known before it runs.
  bool is_uploading = false;        ///< Its event in the queue is the arrival of its upload.
  std::uint64_t event_sequence = 0; ///< Sequence number of its event; higher numbers entered the queue later.
  std::size_t stages_reached = 0;   ///< Stages that have ended in virtual time.
  virtual_time horizon{};           ///< End of the last known stage; at first the end of the download.
  /// Extra download time that `horizon` does not include, because transfers share the server's link.
  virtual_duration delay{0};
  std::uint32_t visit = 0; ///< Visit of its client; not saved.
  // For uploads that share the server's link:
  virtual_time upload_arrives = never;            ///< never: the transfer is still in progress.
  bool waits_for_link = false;                    ///< All parties but the server have received their parts.
  party_bytes sends{};                            ///< Bytes for each party.
  virtual_duration upload_takes{-1};              ///< Cached result of upload_time(); not saved.
  std::int64_t held_bytes = 0;                    ///< Bytes of results computed ahead of virtual time.
  client_result result{};                         ///< Valid in phase finished, from the end of the last job.
  c10::SmallVector<virtual_duration, 2> stages{}; ///< Duration of each known stage.

  /// False if a rerun stage has another duration than before: the checkpoint belongs to another run.
  [[nodiscard]] bool fits(std::uint32_t stage, virtual_duration takes) const noexcept;
  /// Records the duration of a stage (of a rerun stage: again). Returns the due time of its jobs.
  virtual_time learn(std::uint32_t stage, virtual_duration takes);
  /// End of the download if no other transfer shared the link. Stages may be known before that time.
  [[nodiscard]] virtual_time planned_download_end() const noexcept;
  /// Times of its events, from the end of its last stage back to the event in the queue. Empty if the event in the
  /// queue is the arrival of its upload. @pre all its stages are known
  [[nodiscard]] c10::SmallVector<virtual_time, 4> stage_events() const;
  /// Bytes of the part for the server.
  [[nodiscard]] std::int64_t upload_bytes() const noexcept { return sends[index_of(party_id::server)]; }
  [[nodiscard]] std::int64_t& upload_bytes() noexcept { return sends[index_of(party_id::server)]; }
  /// Time at which its upload starts. @pre all its stages are known
  [[nodiscard]] virtual_time sent_at() const noexcept { return later_by(horizon, delay); }
  /// Transfer to a party. @pre all its stages are known
  [[nodiscard]] transfer sent_to(party_id who) const noexcept {
    return {.client = client, .bytes = sends[index_of(who)], .begins = sent_at(), .visit = visit};
  }
  /// Duration of the upload if it starts at the horizon; sharing the link only makes it longer. Cached, because each
  /// query draws the device's speed. @pre upload_bytes() and all its stages are known
  [[nodiscard]] virtual_duration planned_upload_time(const population& clients) {
    if (upload_takes.count() < 0)
      upload_takes =
          clients.devices().upload_time({.client = client, .bytes = upload_bytes(), .begins = horizon, .visit = visit});
    return upload_takes;
  }
  /// Duration of the upload. @pre as above, and its download has ended
  [[nodiscard]] virtual_duration upload_time(const population& clients) {
    return delay.count() > 0 ? clients.devices().upload_time(sent_to(party_id::server)) : planned_upload_time(clients);
  }
  [[nodiscard]] bool uploads() const noexcept { return row_of(doing).uploads(); }
  /// True if the result is known that virtual time needs before the upload arrives; without an upload, the whole
  /// result.
  [[nodiscard]] bool answered() const noexcept {
    return stages_reached < stages.size() || (uploads() ? has_had_result() : has_result()) ||
           (upload_size_known && !stages.empty());
  }
  /// True if all its stages have ended in virtual time and it has no upload.
  [[nodiscard]] bool ends_without_upload() const noexcept { return !uploads() && stages_reached == stages.size(); }
  [[nodiscard]] bool has_result() const noexcept { return phase == assignment_phase::finished; }
  [[nodiscard]] bool has_had_result() const noexcept { return phase >= assignment_phase::finished; }
  [[nodiscard]] bool is_at_shard() const noexcept {
    return phase == assignment_phase::computing || phase == assignment_phase::repeating;
  }
};

/// All assignments in flight and their parked jobs. Results of queries depend on virtual bookkeeping only, never on the
/// order of reports.
class in_flight_table {
public:
  using may_run = std::function<bool(const assignment_in_flight&, virtual_time due)>;

  /// References to other assignments are invalidated by add() and erase().
  assignment_in_flight& add(assignment_in_flight&& added);
  [[nodiscard]] assignment_in_flight& at(assignment_id id) { return assignments_.at(id); }
  [[nodiscard]] assignment_in_flight* find(assignment_id id) { return assignments_.find(id); }
  void erase(assignment_id id);
  [[nodiscard]] std::size_t size() const noexcept { return assignments_.size(); }
  /// Ids in flight, ascending.
  [[nodiscard]] std::vector<assignment_id> ids() const { return assignments_.ids(); }

  /// Counts `bytes` of a result that is computed ahead of virtual time.
  void hold(assignment_in_flight& owner, std::int64_t bytes);
  /// Its results have left memory.
  void release_outcomes(assignment_in_flight& owner);

  void park(std::vector<parked_job> jobs);
  /// Removes its parked jobs after a failure of its round.
  void forget_jobs(assignment_in_flight& owner);
  /// Removes and returns the parked jobs that run now: all of `top`, then others in due order, as long as their results
  /// stay below `held_max` bytes and `agrees` returns true.
  [[nodiscard]] std::vector<parked_job> take_runnable(assignment_id top, std::int64_t held_max, const may_run& agrees);

private:
  void sort_by_due(assignment_id top);

  assignment_table<assignment_in_flight> assignments_;
  std::vector<parked_job> parked_;
  std::int64_t held_bytes_ = 0;
};

} // namespace mneme
