/// in_flight_table: the assignments in flight, what is known of each, and which of their jobs run next.
#pragma once
#include "runtime/base/assignment_table.hpp"
#include "runtime/federation/activities.hpp"
#include "runtime/federation/batch_planner.hpp"
#include "runtime/population/population.hpp"
#include <c10/util/SmallVector.h>
#include <functional>
namespace mneme {

/// Where the round of a client stands, as far as real work is concerned.
enum class assignment_phase : std::uint8_t {
  waiting,   ///< It is not yet at its shard.
  computing, ///< It is at its shard.
  repeating, ///< It runs again at its shard, up to where it was.
  finished,  ///< Its result is known and waits for its virtual time.
  evicted,   ///< Its result was known, and will be computed again when its time has come.
};

/// One client at work on one broadcast, from its dispatch to its delivery.
struct assignment_in_flight {
  assignment_id id{};
  client_id client{};
  round_id round{};
  task_id task{};
  activity_id doing{};
  broadcast_ref in{}; ///< What it works on; with the client's memory and visits, all of its assignment.
  assignment_phase phase = assignment_phase::waiting;
  bool drops_out = false;           ///< During its first stage: none of its jobs are ever needed.
  bool upload_size_known = false;   ///< Its round is one job, and `upload_bytes` is known before it has run.
  bool is_uploading = false;        ///< Its event in the queue is the arrival of what it sends.
  std::uint64_t event_sequence = 0; ///< Its event in the queue was pushed after those of lower ones.
  std::size_t stages_reached = 0;   ///< How far virtual time is.
  virtual_time horizon{};           ///< When the last known stage is over; at first the end of the download.
  /// Its download has taken so much longer than `horizon` knows of: others share the server's link.
  virtual_duration delay{0};
  std::uint32_t visit = 0; ///< Its client's; it is not saved.
  // Where its upload shares the server's link:
  virtual_time upload_arrives = never; ///< never: its transfer is under way.
  bool waits_for_link = false;         ///< All other parties have what they get.
  party_bytes sends{};               ///< What goes to each party.
  virtual_duration upload_takes{-1}; ///< As upload_time() has said it before; it is not saved.
  std::int64_t held_bytes = 0; ///< Outcomes computed ahead of virtual time.
  client_result result{};      ///< finished: known once the last stage has run, perhaps long before its time.
  c10::SmallVector<virtual_duration, 2> stages{}; ///< How long each known stage takes.

  /// False where a round that runs again takes another time than before: its checkpoint was not of this run.
  [[nodiscard]] bool fits(std::uint32_t stage, virtual_duration takes) const noexcept;
  /// A stage's duration is known; where a round runs again, it was. Returns when its jobs are due.
  virtual_time learn(std::uint32_t stage, virtual_duration takes);
  /// When its download would be over if nobody shared the link. What runs ahead may know stages before that.
  [[nodiscard]] virtual_time planned_download_end() const noexcept;
  /// When its events leave the queue, from the end of its last stage back to the one that is in the queue; nothing if
  /// that is its upload's arrival. @pre all its stages are known
  [[nodiscard]] c10::SmallVector<virtual_time, 4> stage_events() const;
  /// The server has its upload with this.
  [[nodiscard]] std::int64_t upload_bytes() const noexcept { return sends[index_of(party_id::server)]; }
  [[nodiscard]] std::int64_t& upload_bytes() noexcept { return sends[index_of(party_id::server)]; }
  /// When what it sends leaves. @pre all its stages are known
  [[nodiscard]] virtual_time sent_at() const noexcept { return later_by(horizon, delay); }
  /// What goes to a party, as it leaves. @pre all its stages are known
  [[nodiscard]] transfer sent_to(party_id who) const noexcept {
    return {.client = client, .bytes = sends[index_of(who)], .begins = sent_at(), .visit = visit};
  }
  /// Until the server has it, if it leaves at the horizon: what is shared only makes it later. A device's speed is
  /// drawn each time that it is asked for, so it is asked for once. @pre upload_bytes() and all its stages are known
  [[nodiscard]] virtual_duration planned_upload_time(const population& clients) {
    if (upload_takes.count() < 0)
      upload_takes =
          clients.devices().upload_time({.client = client, .bytes = upload_bytes(), .begins = horizon, .visit = visit});
    return upload_takes;
  }
  /// Until the server has it. @pre the same, and its download is over
  [[nodiscard]] virtual_duration upload_time(const population& clients) {
    return delay.count() > 0 ? clients.devices().upload_time(sent_to(party_id::server)) : planned_upload_time(clients);
  }
  [[nodiscard]] bool uploads() const noexcept { return row_of(doing).uploads(); }
  /// The answer that virtual time needs before the upload's arrival has come; where there is none, all of it.
  [[nodiscard]] bool answered() const noexcept {
    return stages_reached < stages.size() || (uploads() ? has_had_result() : has_result()) ||
           (upload_size_known && !stages.empty());
  }
  /// All its stages are over in virtual time.
  [[nodiscard]] bool ends_without_upload() const noexcept { return !uploads() && stages_reached == stages.size(); }
  [[nodiscard]] bool has_result() const noexcept { return phase == assignment_phase::finished; }
  [[nodiscard]] bool has_had_result() const noexcept { return phase >= assignment_phase::finished; }
  [[nodiscard]] bool is_at_shard() const noexcept {
    return phase == assignment_phase::computing || phase == assignment_phase::repeating;
  }
};

/// All assignments in flight and their parked jobs. Answers depend on virtual bookkeeping only, never on the order in
/// which reports arrive.
class in_flight_table {
public:
  using may_run = std::function<bool(const assignment_in_flight&, virtual_time due)>;

  /// References to others do not survive add() and erase().
  assignment_in_flight& add(assignment_in_flight&& added);
  [[nodiscard]] assignment_in_flight& at(assignment_id id) { return assignments_.at(id); }
  [[nodiscard]] assignment_in_flight* find(assignment_id id) { return assignments_.find(id); }
  void erase(assignment_id id);
  [[nodiscard]] std::size_t size() const noexcept { return assignments_.size(); }
  /// Ascending.
  [[nodiscard]] std::vector<assignment_id> ids() const { return assignments_.ids(); }

  /// An outcome of so many bytes is computed ahead of virtual time.
  void hold(assignment_in_flight& owner, std::int64_t bytes);
  /// Its outcomes are in memory no more.
  void release_outcomes(assignment_in_flight& owner);

  void park(std::vector<parked_job> jobs);
  /// Its round has failed: no other job of it runs.
  void forget_jobs(assignment_in_flight& owner);
  /// Takes what runs now out of the parked jobs: all of `top`, then the others in due order while their outcomes stay
  /// below `held_max` bytes and `agrees` does.
  [[nodiscard]] std::vector<parked_job> take_runnable(assignment_id top, std::int64_t held_max, const may_run& agrees);

private:
  void sort_by_due(assignment_id top);

  assignment_table<assignment_in_flight> assignments_;
  std::vector<parked_job> parked_;
  std::int64_t held_bytes_ = 0;
};

} // namespace mneme
