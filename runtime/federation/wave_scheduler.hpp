/// wave_scheduler: runs jobs in waves before virtual time needs their results. The choice of jobs that run together
/// depends only on state in virtual time, never on the order of reports. While a wave is running, only events that it
/// cannot affect are handled.
#pragma once
#include "runtime/federation/current_round.hpp"
#include "runtime/federation/evicted_results.hpp"
#include "runtime/federation/open_wave.hpp"
#include "runtime/federation/rerun_tracker.hpp"
#include "runtime/federation/run_output.hpp"
#include "runtime/federation/start_queue.hpp"
namespace mneme {

/// State of the open wave after a report.
enum class wave_progress : std::uint8_t {
  unchanged, ///< The last reports of other shards are missing.
  further,   ///< Events that waited for these results can be handled.
  over,
};

class wave_scheduler {
public:
  /// All arguments must outlive this object.
  wave_scheduler(const federation_settings& settings, const run_clock& clock, const current_round& round,
                 in_flight_table& in_flight, run_output& out);

  // -- assignments
  /// Queues an assignment for the next wave. @param ready virtual time at which its download ends
  void start(assignment&& given, virtual_time ready) { start_queue_.add(std::move(given), ready); }
  /// Registers a result that a checkpoint contained.
  void has_result(const assignment_in_flight& owner) { results_.added(owner); }
  /// Removes a result from the budget after it was sent to the server or committed.
  void delivered(const assignment_in_flight& owner);
  /// Cancels assignments and notifies their shards. @param ids ascending
  void abandon(const std::vector<assignment_id>& ids);

  // -- needs of virtual time
  /// True while a wave is running.
  [[nodiscard]] bool is_out() const noexcept { return wave_.is_out(); }
  /// True if the next event can be handled while a wave is running. Events that end a round or remove clients have to
  /// wait, so that their effects do not depend on the wave's progress.
  [[nodiscard]] bool can_handle() const;
  /// True if the event needs a result that has not been computed.
  [[nodiscard]] bool needs_outcome(const federation_event& next) const;
  /// Error of an assignment that will never have a result. Returns null if there is none.
  [[nodiscard]] const round_failure* failure_of(assignment_id top) const;
  /// Starts a wave of the jobs that `top` needs and of other jobs within the budget.
  /// @param only_cohort true if no client outside the cohort is busy
  void begin_wave(assignment_id top, bool only_cohort);

  // -- reruns
  /// Chooses the evicted results to recompute now: the result of `top` and, within the budget, the results that arrive
  /// next.
  [[nodiscard]] std::vector<assignment_id> to_recompute(assignment_id top) {
    return results_.to_recompute(top, in_flight_, *settings_.clients);
  }
  /// Marks the assignment for a rerun at its next start. @param stages number of stages to rerun; see `rerun_tracker`
  void repeat(assignment_in_flight& owner, std::uint32_t stages);
  [[nodiscard]] bool is_rerunning() const noexcept { return !rerun_.is_empty(); }
  /// Starts all queued assignments. @param at_once true if shards may run the jobs without waiting for a release
  void start_queued(bool at_once = false);
  /// Advances rounds that are being rerun. Returns whether all have caught up. Rerun jobs are not counted again.
  [[nodiscard]] bool is_rerun_complete();

  // -- reports
  [[nodiscard]] wave_progress on_wave_report(wave_report& report);
  /// The first failure in the latest wave.
  [[nodiscard]] const std::optional<round_failure>& failure() const noexcept { return wave_.failure(); }
  /// Evicts results that exceed the budget. @pre the wave has ended and no round is being rerun
  void make_room();

private:
  [[nodiscard]] bool may_run_at_once() const;
  void release_for(assignment_id top);
  void send(std::vector<shard_batches> batches);
  void record_durations(const wave_report& report);
  void record_results(std::vector<finished_round>& finished);
  void keep_failure(round_failure reason);

  const federation_settings& settings_;
  const run_clock& clock_;
  const current_round& round_;
  in_flight_table& in_flight_;
  run_output& out_;
  start_queue start_queue_;
  open_wave wave_;
  evicted_results results_;
  bool has_logged_eviction_ = false;
  rerun_tracker rerun_;
  std::map<assignment_id, round_failure> failures_; // failed rounds; virtual time does not need their results yet
};

} // namespace mneme
