/// recovery: what it takes to go on from a checkpoint, and what runs again. A coroutine is never saved: a client's
/// round is a pure function, so it runs again from its assignment.
#pragma once
#include "runtime/federation/checkpoint_turn.hpp"
#include "runtime/federation/dispatcher.hpp"
namespace mneme {

class recovery {
public:
  /// All outlive this.
  recovery(const federation_settings& settings, run_clock& clock, current_round& round, in_flight_table& in_flight,
           server_links& links, computing_ahead& ahead, dispatcher& dispatch, run_output& out)
      : settings_(settings), clock_(clock), round_(round), in_flight_(in_flight), links_(links), ahead_(ahead),
        dispatch_(dispatch), out_(out) {}

  // -- checkpoints
  /// All of the federation, to or from a checkpoint. @param next what follows
  /// Loading throws archive_error where the checkpoint says what cannot be. @pre no wave is out
  void persist(archive& state, next_step& next);

  // -- what runs again
  /// Computes what `top` waits for: again, where its result was evicted, with those that arrive next.
  void compute_for(assignment_id top);
  // Each returns whether all that runs again is where it was: then what is parked is what was parked, and the run goes
  // on as if nothing had happened. Else a wave is out.
  /// A checkpoint was loaded, and all parties have been restored.
  [[nodiscard]] bool begin_again();
  /// A wave has ended in which rounds ran again.
  [[nodiscard]] bool catch_up();

private:
  void persist_assignments(archive& state);
  void persist_assignment(archive& state, assignment_in_flight& saved, bool with_results);
  [[nodiscard]] bool stores_results();
  void expect_possible(const assignment_in_flight& saved, assignment_phase phase,
                       const std::vector<virtual_duration>& stages, std::uint64_t reached) const;
  void expect_sound(next_step next) const;

  const federation_settings& settings_;
  run_clock& clock_;
  current_round& round_;
  in_flight_table& in_flight_;
  server_links& links_;
  computing_ahead& ahead_;
  dispatcher& dispatch_;
  run_output& out_;
};

} // namespace mneme
