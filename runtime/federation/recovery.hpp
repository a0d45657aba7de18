/// recovery: saves and restores the federation, and reruns assignments. Coroutines are never saved. A client's round is
/// a pure function, so it is rerun from its assignment.
#pragma once
#include "runtime/federation/checkpoint_schedule.hpp"
#include "runtime/federation/dispatcher.hpp"
namespace mneme {

class recovery {
public:
  /// All arguments must outlive this object.
  recovery(const federation_settings& settings, run_clock& clock, current_round& round, in_flight_table& in_flight,
           server_links& links, wave_scheduler& waves, dispatcher& dispatch, run_output& out)
      : settings_(settings), clock_(clock), round_(round), in_flight_(in_flight), links_(links), waves_(waves),
        dispatch_(dispatch), out_(out) {}

  // -- checkpoints
  /// Saves or loads the whole federation. Loading throws archive_error if the checkpoint is inconsistent.
  /// @param next the run's next step after the checkpoint @pre no wave is running
  void persist(archive& state, next_step& next);

  // -- reruns
  /// Computes the result that `top` needs. If that result was evicted, other evicted results that arrive soon are
  /// recomputed, too.
  void compute_for(assignment_id top);
  // begin_rerun() and continue_rerun() return true if all reruns have caught up. The same jobs as before the
  // interruption are then parked, and the run can continue. Otherwise a wave is running.
  /// Starts reruns after a checkpoint was loaded and all parties were restored.
  [[nodiscard]] bool begin_rerun();
  /// Continues reruns after the end of a wave.
  [[nodiscard]] bool continue_rerun();

private:
  void persist_assignments(archive& state);
  void persist_assignment(archive& state, assignment_in_flight& saved, bool with_results);
  [[nodiscard]] bool stores_results();
  void check_assignment(const assignment_in_flight& saved, assignment_phase phase,
                        const std::vector<virtual_duration>& stages, std::uint64_t reached) const;
  void check_loaded(next_step next) const;

  const federation_settings& settings_;
  run_clock& clock_;
  current_round& round_;
  in_flight_table& in_flight_;
  server_links& links_;
  wave_scheduler& waves_;
  dispatcher& dispatch_;
  run_output& out_;
};

} // namespace mneme
