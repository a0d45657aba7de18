#include "actors/scheduler/scheduler.hpp"
#include "actors/scheduler/federation_settings_of.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

scheduler_state::scheduler_state(scheduler_actor::pointer self, const run_context_ref& context,
                                 std::function<scheduler_links(scheduler_actor)> make_peers, resume_state_ref past)
    : self_(self), make_peers_(std::move(make_peers)), federation_(federation_settings_of(*context)),
      past_(std::move(past)) {}

scheduler_actor::behavior_type scheduler_state::make_behavior() {
  self_->set_down_handler([this](const caf::down_msg& down) {
    if (down.reason == run_errc::interrupted)
      federation_.finish(run_status::interrupted);
    else if (down.reason == run_errc::round_failed)
      federation_.finish(run_status::failed, error_message(down.reason));
    else
      federation_.finish(run_status::failed, "an actor ended before the run was over: " + caf::to_string(down.reason));
    carry_out();
  });
  return {
      [this](run_request) { return run(); },
      [this](stop_run) { federation_.stop(); },
      [this](wave_report& report) {
        federation_.handle(report);
        carry_out();
      },
  };
}

caf::result<run_report> scheduler_state::run() {
  promise_ = self_->make_response_promise<run_report>();
  peers_ = make_peers_(scheduler_actor{self_});
  for (const auto& worker : peers_.workers)
    self_->monitor(worker);
  for (const auto& party : peers_.parties)
    if (party)
      self_->monitor(party);
  self_->monitor(peers_.recorder);
  if (peers_.placement)
    self_->monitor(peers_.placement);
  if (past_)
    federation_.resume(past_->run);
  else
    federation_.begin();
  carry_out();
  return promise_;
}

void scheduler_state::fail(const caf::error& error) {
  if (error == run_errc::interrupted)
    federation_.finish(run_status::interrupted);
  else
    federation_.finish(run_status::failed, error_message(error));
  carry_out();
}

template <class Command>
void scheduler_state::send(Command command) {
  if constexpr (requires { command.to; })
    self_->send(peers_.shards.at(command.to.value), std::move(command));
  else
    self_->request(peers_.recorder, caf::infinite, std::move(command))
        .then([] {}, [this](const caf::error& error) { fail(error); });
}

// -- messages to the parties ------------------------------------------------------------------------------------------

template <class Answer, class Peer, class Command>
void scheduler_state::request(const Peer& peer, Command command) {
  self_->request(peer, caf::infinite, std::move(command))
      .then(
          [this](Answer& answer) {
            federation_.allow_checkpoints(pace_.allows());
            federation_.handle(answer);
            carry_out();
          },
          [this](const caf::error& error) { fail(error); });
}

template <class Answer, class Command>
void scheduler_state::request_party(Command command) {
  const auto& peer = party(command.to);
  request<Answer>(peer, std::move(command));
}

void scheduler_state::send(open_task command) { request<task_plan>(peers_.server, command); }
void scheduler_state::send(open_round command) { request<opened_round>(peers_.server, command); }
void scheduler_state::send(evaluate command) { request<evaluated>(peers_.server, std::move(command)); }
void scheduler_state::send(take_step command) { request_party<step_taken>(std::move(command)); }
void scheduler_state::send(restore_state command) { request_party<restored_state>(std::move(command)); }

void scheduler_state::send(save_state command) {
  if (command.to == party_id::server)
    pace_.began();
  request_party<saved_state>(std::move(command));
}

void scheduler_state::send(deliveries command) {
  const bool tell = command.ack_when_folded;
  self_->request(party(command.to), caf::infinite, std::move(command))
      .then(
          [this, tell] {
            if (!tell)
              return;
            federation_.on_uploads_folded();
            carry_out();
          },
          [this](const caf::error& error) { fail(error); });
}

// -- messages to the recorder -----------------------------------------------------------------------------------------

/// Requests a checkpoint. If the checkpoint cannot be written, the run continues.
void scheduler_state::send(save_checkpoint command) {
  const auto ended = [this] {
    pace_.ended();
    federation_.on_checkpoint_written();
    carry_out();
  };
  self_->request(peers_.recorder, caf::infinite, std::move(command))
      .then(ended, [this, ended](const caf::error& error) {
        send(run_warning{error_message(error)});
        ended();
      });
}

/// Resumes the federation after pending messages, such as a stop request, have been handled.
void scheduler_state::send(pause) {
  self_->run_delayed(std::chrono::nanoseconds(0), [this] {
    federation_.continue_events();
    carry_out();
  });
}

void scheduler_state::send(run_report ended) { promise_.deliver(std::move(ended)); }

void scheduler_state::carry_out() {
  federation_.take_commands(commands_);
  for (auto& issued : commands_)
    std::visit([this](auto& command) { send(std::move(command)); }, issued);
}

} // namespace mneme
