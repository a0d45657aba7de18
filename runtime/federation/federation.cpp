#include "runtime/federation/federation.hpp"
#include "runtime/base/tuning.hpp"
#include <fmt/format.h>
#include <optional>
namespace mneme {
namespace {

/// True if the client's link has rate 0 from `now` on, because its trace has ended.
bool is_cut_off(const assignment_in_flight& owner, const population& clients, virtual_time now) {
  const auto way = owner.is_uploading ? link_direction::up : link_direction::down;
  return clients.devices().client_mbit(owner.client, way, now) == std::pair(0.0, never);
}

/// Finds the client whose next event never happens, for the error message. For stalled shared links, a client whose
/// trace has ended is preferred to any other client with a pending transfer. @pre clock.is_stalled()
std::optional<client_id> stuck_client(const run_clock& clock, in_flight_table& in_flight, const population& clients) {
  const auto is_stuck = [&](const assignment_in_flight& owner) { return is_cut_off(owner, clients, clock.now()); };
  const auto& next = clock.next();
  if (const auto* const owner = in_flight.find(next.assignment))
    return clock.next_is_never() || is_stuck(*owner) ? std::optional(owner->client) : std::nullopt;
  if (next.event_kind != federation_event::kind::link_change)
    return std::nullopt;
  std::optional<client_id> first_client;
  for (const auto id : in_flight.ids()) {
    const auto& owner = in_flight.at(id);
    if (owner.waits_for_link && is_stuck(owner))
      return owner.client;
    first_client = first_client.value_or(owner.client);
  }
  return first_client;
}

} // namespace

federation::federation(federation_settings settings) : settings_(std::move(settings)) {}

// -- virtual time -----------------------------------------------------------------------------------------------------

/// The main loop: handles due events. If the next event needs a missing result, the loop starts all runnable jobs, or
/// begins the next wave once all shards have reported. A stop request takes effect between two events.
void federation::advance() {
  if (!waves_.is_out())
    out_.flush_many_events();
  for (auto events = tuning::events_without_pause; !out_.is_over() && round_.is_open && !work_.waits_for_server();) {
    if (waves_.is_out() && (stopping_ || !waves_.can_handle()))
      return;
    if (stopping_)
      return stop_at(next_step::event);
    if (!clock_.has_events() || dispatch_.cannot_progress())
      return close();
    if (waves_.needs_outcome(clock_.next())) {
      const auto top = clock_.next().assignment;
      if (const auto* const error_text = waves_.failure_of(top))
        return fail_round(*error_text);
      checkpoints_.next = next_step::event; // the step that follows once the rounds have been rerun
      return recovery_.compute_for(top);
    }
    if (clock_.is_stalled())
      return fail_stalled_run();
    if (--events < 0)
      return out_.command(pause{});
    handle(clock_.take_next());
    if (clock_.is_at_last_event())
      stopping_ = true;
  }
}

void federation::fail_stalled_run() {
  out_.report().waits_for = stuck_client(clock_, in_flight_, *settings_.clients);
  finish(run_status::failed, clock_.stall_reason(round_.info.round));
}

void federation::handle(const federation_event& now) {
  using enum federation_event::kind;
  if (now.event_kind == deadline) {
    if (!round_.is_open || now.round != round_.info.round)
      return;
    dispatch_.deadline_passed();
    return close();
  }
  if (now.event_kind == churn) {
    dispatch_.apply_churn();
    if (settings_.is_async() || round_.wants_clients)
      return dispatch_work();
    return round_.missing == 0 ? close() : void();
  }
  if (now.event_kind == link_change)
    return work_.links_changed();
  auto* const owner = in_flight_.find(now.assignment);
  if (!owner) // the assignment was canceled
    return;
  if (now.event_kind == drop_out) {
    ++out_.report().dropped;
    dispatch_.abandon({owner->id}, "drop_out");
    return dispatch_.dispatch_idle();
  }
  const bool is_of_this_round = owner->round == round_.info.round;
  const bool has_ended = now.event_kind == stage_over ? work_.stage_over(*owner) : work_.arrive(*owner, now.where);
  if (!has_ended)
    return;
  if (settings_.is_async())
    return round_.folded == settings_.uploads_of_step() ? close() : dispatch_.dispatch_idle();
  if (is_of_this_round && --round_.missing == 0)
    return close();
  if (round_.wants_clients)
    dispatch_work();
}

void federation::continue_events() {
  guarded([this] { advance(); });
}

void federation::on_uploads_folded() {
  work_.on_uploads_folded();
  guarded([this] { advance(); });
}

void federation::handle(wave_report& report) {
  guarded([&] {
    const auto progress = waves_.on_wave_report(report);
    if (progress == wave_progress::unchanged)
      return;
    if (progress == wave_progress::further)
      return advance();
    if (const auto& error_text = waves_.failure(); error_text && error_text->reason == interrupted_text)
      return waves_.is_rerunning() ? finish(run_status::interrupted) : stop_at(next_step::event);
    if (const auto& error_text = waves_.failure()) {
      out_.return_to_mark();
      return fail_round(*error_text);
    }
    if (!waves_.is_rerunning()) {
      waves_.make_room();
      return advance();
    }
    if (stopping_ && !clock_.has_begun()) // the checkpoint on disk is still up to date
      return finish(run_status::interrupted);
    if (recovery_.continue_rerun())
      continue_run();
  });
}

// -- the end ----------------------------------------------------------------------------------------------------------

void federation::finish(run_status status, std::string error) {
  if (out_.is_over())
    return;
  dispatch_.abandon(in_flight_.ids(), "abandoned");
  out_.end(status, std::move(error));
}

void federation::fail_round(const round_failure& error_text) {
  in_flight_ = {};
  const auto& job = error_text.last_job;
  finish(run_status::failed,
         fmt::format("client {}, round {}, job {}.{}.{}: {}", error_text.client.value, error_text.round.value + 1,
                     job.assignment.value, job.stage, job.step, error_text.reason));
}

/// May be called twice, because the server acknowledges uploads while the last checkpoint is being taken. The second
/// call has no effect.
void federation::stop_at(next_step next) {
  if (!checkpoints_.begin_shutdown())
    return;
  checkpoints_.next = next;
  if (checkpoints_.are_taken())
    take_checkpoint();
  else
    continue_run();
}

// -- checkpoints ------------------------------------------------------------------------------------------------------

/// Requests the states of all parties. Parties and recorder have received all earlier messages by then.
void federation::take_checkpoint() {
  out_.flush_events();
  work_.flush_deliveries();
  checkpoints_.began();
  archive state;
  recovery_.persist(state, checkpoints_.next);
  turn_.begin();
  out_.command(save_state{.so_far = std::move(state)});
}

void federation::handle(saved_state& state) {
  guarded([&] {
    if (turn_.advance_party())
      return out_.command(save_state{.to = turn_.current(), .so_far = std::move(state.state)});
    out_.command(save_checkpoint{std::move(state.state)});
    if (checkpoints_.continues_while_writing())
      continue_run();
  });
}

void federation::on_checkpoint_written() {
  if (checkpoints_.on_checkpoint_written())
    guarded([this] { continue_run(); });
}

void federation::resume(archive saved) {
  guarded([&] {
    recovery_.persist(saved, checkpoints_.next);
    turn_.begin();
    out_.command(restore_state{.sections = std::move(saved)});
  });
}

void federation::handle(restored_state& state) {
  guarded([&] {
    if (turn_.advance_party())
      return out_.command(restore_state{.to = turn_.current(), .sections = std::move(state.sections)});
    state.sections.expect_end();
    if (recovery_.begin_rerun())
      continue_run();
  });
}

void federation::continue_run() {
  if (checkpoints_.is_ending())
    return finish(run_status::interrupted);
  switch (checkpoints_.next) {
  case next_step::task:
    dispatch_.open_task({round_.info.task.value + 1});
    return out_.command(open_task{round_.info});
  case next_step::round:
    return stopping_ ? stop_at(next_step::round) : out_.command(open_round{round_.info});
  case next_step::event:
    return advance();
  }
}

} // namespace mneme
