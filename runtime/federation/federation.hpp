/// federation: decides when rounds of a run open, which clients take part, and what is computed, delivered, folded and
/// saved. It is a value and uses virtual time only, with no actors, threads or wall clock.
#pragma once
#include "runtime/base/exception_message.hpp"
#include "runtime/federation/client_work.hpp"
#include "runtime/federation/party_sequence.hpp"
#include "runtime/federation/recovery.hpp"
namespace mneme {

/// Receives one input at a time and returns commands. Each command to a shard or a party leads to a later input, its
/// answer. Answers may arrive in any order. The command run_report ends the run; later inputs are ignored.
///
/// Parts: run_clock (virtual time and events), dispatcher (assignment of work), wave_scheduler (waves of jobs),
/// client_work (a client's progress in virtual time), recovery (reruns and checkpoints). The federation itself orders
/// tasks and rounds.
class federation {
public:
  explicit federation(federation_settings settings);
  federation(const federation&) = delete; // parts hold references to each other

  // -- inputs: the run
  void begin();
  /// Resumes from a checkpoint. @param saved states of the federation and of all parties
  void resume(archive saved);
  /// Ends the run after the current event.
  void stop() noexcept { stopping_ = true; }
  /// Ends the run immediately. Status failed: an error outside of the federation. Status interrupted: a party's step
  /// was cut off, and the run can be resumed from the last checkpoint.
  void finish(run_status status, std::string error = {});
  /// Continues after the command `pause`.
  void continue_events();
  /// Allows or forbids checkpoints that are due but not forced. The caller decides by wall-clock time before each
  /// input; the setting holds until the next checkpoint.
  void allow_checkpoints(bool allowed) noexcept { checkpoints_.allow(allowed); }

  // -- inputs: a shard's report
  void handle(wave_report& report);

  // -- inputs: replies of the server
  void handle(const task_plan& plan);
  void handle(opened_round& opened);
  void handle(const evaluated& sums);

  // -- inputs: replies of the party that was called last
  void handle(const step_taken& step);
  void handle(saved_state& state);
  void handle(restored_state& state); ///< The party has restored its state from a checkpoint.
  void on_uploads_folded();           ///< The party has folded the uploads sent to it.

  // -- inputs: replies of the recorder
  void on_checkpoint_written(); ///< A checkpoint is on disk, or writing it has failed.

  // -- output
  /// Swaps the pending commands with `taken`; the previous contents of `taken` are discarded.
  void take_commands(std::vector<federation_command>& taken) { out_.take_commands(taken); }

private:
  /// Calls step(). Ends the run with an error message if the file of client memories fails or a checkpoint is
  /// inconsistent.
  template <class Step>
  void guarded(Step step);

  // federation.cpp: the loop
  void advance();
  void fail_stalled_run();
  void handle(const federation_event& now);
  void fail_round(const round_failure& reason);
  void stop_at(next_step next);
  void take_checkpoint();
  void continue_run();

  // federation_rounds.cpp: tasks and rounds
  void dispatch_work();
  void close();
  void round_closed();
  void next_round();

  const federation_settings settings_;
  current_round round_;
  in_flight_table in_flight_;
  run_clock clock_{settings_};
  run_output out_{settings_, clock_, round_.info};
  server_links links_{settings_, clock_};
  wave_scheduler waves_{settings_, clock_, round_, in_flight_, out_};
  dispatcher dispatch_{settings_, clock_, round_, in_flight_, links_, waves_, out_};
  client_work work_{settings_, clock_, round_, waves_, dispatch_, in_flight_, links_, out_};
  recovery recovery_{settings_, clock_, round_, in_flight_, links_, waves_, dispatch_, out_};
  checkpoint_schedule checkpoints_{settings_.checkpoint};
  party_sequence turn_{settings_.other_parties};
  tensors_ref model_; // the server's model after its step; sent to the other parties
  bool stopping_ = false;
};

template <class Step>
void federation::guarded(Step step) {
  if (out_.is_over())
    return;
  std::string damage;
  const auto reason = exception_message_of([&] { damage = archive_error_of(step); });
  if (!damage.empty()) {
    in_flight_ = {}; // assignments that no shard has received
    finish(run_status::failed, "the checkpoint cannot be read: it " + damage);
  } else if (!reason.empty()) {
    finish(run_status::failed, reason);
  }
}

} // namespace mneme
