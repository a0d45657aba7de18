/// federation: what a run decides, as a value: which rounds open, who works in them, what is computed, delivered,
/// folded and saved, and when. It knows virtual time, and neither actors nor threads nor a clock.
#pragma once
#include "runtime/base/failure_of.hpp"
#include "runtime/federation/client_work.hpp"
#include "runtime/federation/party_turn.hpp"
#include "runtime/federation/recovery.hpp"
namespace mneme {

/// Inputs go in, one at a time, and leave commands behind. Each command to a shard or to a party is answered by an
/// input, in any order among them; the run is over with the command run_report, after which inputs are ignored.
///
/// Its parts: run_clock has virtual time and its events, dispatcher who works on what, computing_ahead the real work,
/// client_work what a client does in virtual time, recovery what runs again and what a checkpoint holds. The federation
/// itself has the order of tasks and rounds.
class federation {
public:
  explicit federation(federation_settings settings);
  federation(const federation&) = delete; // parts know each other

  // -- inputs: the run
  void begin();
  /// Goes on from a checkpoint. @param saved of federation and parties, for loading
  void resume(archive saved);
  /// Ends the run after the event at hand.
  void stop() noexcept { stopping_ = true; }
  /// Ends the run at once: failed, where something outside has; interrupted, where a step of a party has ended in its
  /// middle: then it goes on from the last checkpoint.
  void finish(run_status status, std::string error = {});
  /// Goes on after a pause.
  void continue_events();
  /// Checkpoints that are due, and not forced, may be taken now. Whoever knows the wall clock says so before an input;
  /// it holds until one is taken.
  void allow_checkpoints(bool allowed) noexcept { checkpoints_.allow(allowed); }

  // -- inputs: a shard's report
  void take(wave_report& report);

  // -- inputs: the server's answers
  void take(const task_plan& plan);
  void take(opened_round& opened);
  void take(const evaluated& sums);

  // -- inputs: answers of the party that was asked last
  void take(const step_taken& step);
  void take(saved_state& state);
  void take(restored_state& state); ///< It goes on from a checkpoint.
  void folded();                    ///< It has folded uploads of which it was to tell.

  // -- inputs: the recorder's answer
  void kept(); ///< A checkpoint is on the disk, or could not be written.

  // -- output
  /// Swaps the commands that wait for those in `taken`, which are forgotten.
  void take_commands(std::vector<federation_command>& taken) { out_.take_commands(taken); }

private:
  /// Takes an input. The file that holds memories for which there is no room can fail, and a checkpoint can say what
  /// cannot be: then the run ends, in words.
  template <class Step>
  void guarded(Step step);

  // federation.cpp: the loop
  void advance();
  void end_at_dead_end();
  void handle(const federation_event& now);
  void fail_round(const round_failure& why);
  void stop_at(next_step next);
  void take_checkpoint();
  void go_on();

  // federation_rounds.cpp: tasks and rounds
  void give_work();
  void close();
  void round_closed();
  void next_round();

  const federation_settings settings_;
  current_round round_;
  in_flight_table in_flight_;
  run_clock clock_{settings_};
  run_output out_{settings_, clock_, round_.place};
  server_links links_{settings_, clock_};
  computing_ahead ahead_{settings_, clock_, round_, in_flight_, out_};
  dispatcher dispatch_{settings_, clock_, round_, in_flight_, links_, ahead_, out_};
  client_work work_{settings_, clock_, round_, ahead_, dispatch_, in_flight_, links_, out_};
  recovery recovery_{settings_, clock_, round_, in_flight_, links_, ahead_, dispatch_, out_};
  checkpoint_turn checkpoints_{settings_.checkpoint};
  party_turn turn_{settings_.further_parties};
  tensors_ref model_; // after the server step, while other parties are given it
  bool stopping_ = false;
};

template <class Step>
void federation::guarded(Step step) {
  if (out_.is_over())
    return;
  std::string damage;
  const auto why = failure_of([&] { damage = archive_damage(step); });
  if (!damage.empty()) {
    in_flight_ = {}; // no shard knows of them
    finish(run_status::failed, "the checkpoint cannot be read: it " + damage);
  } else if (!why.empty()) {
    finish(run_status::failed, why);
  }
}

} // namespace mneme
