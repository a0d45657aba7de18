/// computing_ahead: real work, which is done in waves before virtual time needs its results. What runs together follows
/// from virtual bookkeeping alone, and while a wave is out only what it cannot change goes on.
#pragma once
#include "runtime/federation/current_round.hpp"
#include "runtime/federation/evicted_results.hpp"
#include "runtime/federation/open_wave.hpp"
#include "runtime/federation/rerun.hpp"
#include "runtime/federation/run_output.hpp"
#include "runtime/federation/start_queue.hpp"
namespace mneme {

/// How far the open wave is after a report.
enum class wave_progress : std::uint8_t {
  unchanged, ///< Other shards have not answered.
  further,   ///< What waits for its results may go on.
  over,
};

class computing_ahead {
public:
  /// All outlive this.
  computing_ahead(const federation_settings& settings, const run_clock& clock, const current_round& round,
                  in_flight_table& in_flight, run_output& out);

  // -- assignments
  /// It begins with the next wave. @param ready when its download is over
  void start(assignment&& given, virtual_time ready) { start_queue_.add(std::move(given), ready); }
  /// Its result was loaded from a checkpoint.
  void has_result(const assignment_in_flight& owner) { results_.added(owner); }
  /// Its result leaves for the server, or holds from now on.
  void delivered(const assignment_in_flight& owner);
  /// They are in flight no more, and their shards are told. @param ids ascending
  void abandon(const std::vector<assignment_id>& ids);

  // -- what virtual time needs
  /// A wave is out: something is being computed.
  [[nodiscard]] bool is_out() const noexcept { return wave_.is_out(); }
  /// The event that is next may be handled all the same. What ends a round, or takes clients from work, waits until all
  /// is quiet, so that nothing that follows from it depends on how far the wave has come.
  [[nodiscard]] bool may_go_on() const;
  /// The event cannot be handled before something is computed.
  [[nodiscard]] bool needs_answer(const federation_event& next) const;
  /// Why there will never be an answer; null: there will.
  [[nodiscard]] const round_failure* failure_of(assignment_id top) const;
  /// Computes what `top` waits for, and what there is room for. @param only_cohort nobody works besides
  void begin_wave(assignment_id top, bool only_cohort);

  // -- what runs again
  /// Evicted results that are computed again now: `top`'s, and those that arrive next as far as there is room.
  [[nodiscard]] std::vector<assignment_id> to_recompute(assignment_id top) {
    return results_.to_recompute(top, in_flight_, *settings_.clients);
  }
  /// It runs again once it is started. @param stages as rerun has them
  void repeat(assignment_in_flight& owner, std::uint32_t stages);
  [[nodiscard]] bool is_repeating() const noexcept { return !rerun_.is_empty(); }
  /// Starts all that wait to be started. @param at_once shards need not wait to be told which jobs run
  void start_waiting(bool at_once = false);
  /// Brings rounds that run again further. Returns whether all of them are where they were; jobs are not counted twice.
  [[nodiscard]] bool repeats_no_more();

  // -- what comes back
  [[nodiscard]] wave_progress take(wave_report& report);
  /// What went wrong in the wave that is over.
  [[nodiscard]] const std::optional<round_failure>& failure() const noexcept { return wave_.failure(); }
  /// The wave is over, and nothing runs again: results for which there is no room are forgotten.
  void make_room();

private:
  [[nodiscard]] bool may_run_at_once() const;
  void release_for(assignment_id top);
  void send(std::vector<shard_batches> batches);
  void learn_durations(const wave_report& report);
  void learn_results(std::vector<finished_round>& finished);
  void keep_failure(round_failure why);

  const federation_settings& settings_;
  const run_clock& clock_;
  const current_round& round_;
  in_flight_table& in_flight_;
  run_output& out_;
  start_queue start_queue_;
  open_wave wave_;
  evicted_results results_;
  bool told_of_eviction_ = false;
  rerun rerun_;
  std::map<assignment_id, round_failure> failures_; // of rounds whose answers virtual time does not need yet
};

} // namespace mneme
