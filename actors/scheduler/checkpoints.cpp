// The scheduler's checkpoints: what it takes to go on, and how clients at work come back to where they were. A
// coroutine is never saved: a client's round is a pure function, so it runs again from its assignment.
#include "actors/protocol/checkpoint_state.hpp"
#include "actors/scheduler/scheduler.hpp"
#include "actors/scheduler/scheduler_ask.hpp"
#include <limits>
#include <utility>
namespace mneme {
namespace {

std::int64_t bytes_of(const tensors_ref& tensors) { return tensors ? tensors->bytes() : 0; }

} // namespace

// -- taking one
// -------------------------------------------------------------------------------------------------------

void scheduler_state::go_on() {
  switch (next_) {
  case next_step::task:
    return begin_task({place_.task.value + 1});
  case next_step::round:
    return begin_round();
  case next_step::event:
    return advance();
  }
}

/// Called once after each server step.
void scheduler_state::checkpoint_then_go_on(next_step next) {
  next_ = next;
  const auto& [every, force, keep] = world_->what.checkpoint;
  checkpoint_due_ = checkpoint_due_ || (every > 0 && report_.rounds % every == 0);
  if (!checkpoint_due_ || !(force || pace_.allows()))
    return go_on();
  checkpoint_due_ = false;
  take_checkpoint(force ? when_done::written : when_done::copied, &scheduler_state::go_on);
}

/// Again while the last checkpoint is taken, if the server answers to uploads it was handed for it.
void scheduler_state::stop_at(next_step next) {
  if (std::exchange(ending_, true))
    return;
  next_ = next;
  if (world_->what.checkpoint.every > 0)
    take_checkpoint(when_done::written, &scheduler_state::end_interrupted);
  else
    end_interrupted();
}

void scheduler_state::end_interrupted() { finish(run_status::interrupted); }

/// All that happened so far has been told to server and recorder before they are asked for their state.
void scheduler_state::take_checkpoint(when_done goes_on, void (scheduler_state::*then)()) {
  flush_events();
  hand_over_deliveries();
  pace_.began();
  archive mine;
  try {
    persist(mine);
  } catch (const std::exception& e) { // of the file that holds what memory has no room for
    return finish(run_status::failed, e.what());
  }
  ask_server<saved_state>(save_state{std::move(mine)}, [this, goes_on, then](saved_state state) {
    const auto written = [this, goes_on, then] {
      pace_.ended();
      if (goes_on == when_done::written && !over_)
        (this->*then)();
    };
    self_->request(peers_.recorder, caf::infinite, keep_state{std::move(state.all)})
        .then(written, [this, written](const caf::error& why) {
          tell_recorder(run_warning{in_words(why)});
          written();
        });
    if (goes_on == when_done::copied)
      (this->*then)();
  });
}

// -- what is saved
// ----------------------------------------------------------------------------------------------------

void scheduler_state::persist(archive& all) {
  all.section("time")(next_)(queue_)(next_assignment_);
  all.section("clients").plain(clients_)(presence_)(change_at_)(idle_);
  persist_memories(all);
  persist_flights(all);
  all.section("round")(place_)(plan_)(round_open_)(wants_clients_)(cohort_missing_)(folded_);
  all(deadline_at_)(dropped_out_);
  if (!round_open_)
    broadcast_ = {}; // nobody receives it any more
  all(broadcast_.in)(broadcast_.bytes)(broadcast_.once_bytes);
  all.section("report")(report_)(digest_)(trace_);
}

void scheduler_state::persist_memories(archive& all) {
  std::uint64_t count = memories_.size();
  all.section("memories")(count);
  if (!all.loading())
    memories_.each([&](client_id who, memory_ref what) { all(who)(what); });
  for (std::uint64_t i = 0; all.loading() && i < count; ++i) {
    client_id who;
    memory_ref what;
    all(who)(what);
    memories_.put(who, std::move(what));
  }
}

void scheduler_state::persist_flights(archive& all) {
  all.section("flights");
  auto ids = flights_.ids();
  bool with_results = keeps_results();
  all(ids)(with_results);
  for (const auto id : ids) {
    flight one;
    persist(all, all.loading() ? one : flights_.at(id), with_results);
    if (all.loading())
      flights_.add(std::move(one));
  }
}

void scheduler_state::persist(archive& all, flight& one, bool with_results) {
  std::vector<virtual_duration> stages(one.stages.begin(), one.stages.end());
  std::uint64_t reached = one.stages_reached;
  bool finished = one.result.has_value() || one.given_up;
  bool stored = one.result.has_value() && with_results;
  all(one.id)(one.client)(one.round)(one.in)(one.late)(one.started)(one.vanishes)(one.horizon);
  all(stages)(reached)(one.upload_bytes)(one.held_bytes)(finished)(stored);
  if (stored)
    all(all.loading() ? one.result.emplace() : *one.result);
  if (!all.loading())
    return;
  one.stages.assign(stages.begin(), stages.end());
  one.stages_reached = reached;
  one.foretold = world_->method->foretells_uploads();
  if (may_leave_at_work())
    at_work_[one.client] = one.id;
  if (one.result)
    result_bytes_ += one.upload_bytes;
  else
    one.held_bytes = 0; // counted again as its jobs are released
  one.given_up = finished && !stored;
  if (one.started && !finished)
    replays_[one.id] = false;
}

/// Where bits depend on the batch, a result computed again might be another.
bool scheduler_state::keeps_results() {
  std::int64_t bytes = 0;
  for (const auto id : flights_.ids())
    if (const auto& result = flights_.at(id).result)
      bytes += bytes_of(result->upload) + bytes_of(result->memory);
  return world_->device != "cpu" || bytes <= world_->stored_results_max.bytes;
}

// -- going on
// ---------------------------------------------------------------------------------------------------------

void scheduler_state::resume() {
  auto state = past_->run;
  try {
    persist(state);
  } catch (const archive_error& e) {
    return finish(run_status::failed, std::string("the checkpoint cannot be read: it ") + e.what());
  } catch (const std::exception& e) {
    return finish(run_status::failed, e.what());
  }
  self_->request(peers_.server, caf::infinite, restore_state{std::move(state)})
      .then([this] { start_replays(); }, [this](const caf::error& why) { finish(run_status::failed, in_words(why)); });
}

void scheduler_state::start_replays() {
  for (const auto& [id, finished] : replays_)
    depart(flights_.at(id));
  if (to_start_.size() == 0)
    replay();
  else
    start_waiting();
}

/// Brings clients at work back to the job for which they waited, or to their result; jobs are not counted twice. Then
/// what is parked is what was parked, and the run goes on as if nothing had happened.
void scheduler_state::replay() {
  if (stopping_ && !replays_.empty() && events_handled_ == 0) // the checkpoint on the disk is still the newest
    return end_interrupted();
  const auto behind = [this](const flight& one) {
    const auto found = replays_.find(one.id);
    return found != replays_.end() && (found->second ? !one.result : one.stages_run < one.stages.size());
  };
  constexpr assignment_id nobody{std::numeric_limits<std::uint64_t>::max()};
  const release_rules rules{.ahead_bytes_max = std::numeric_limits<std::int64_t>::max(),
                            .workers = world_->workers,
                            .balance_over_workers = world_->device == "cpu"};
  std::erase_if(replays_, [&](const auto& one) { return !behind(flights_.at(one.first)); });
  if (!replays_.empty())
    return send(flights_.release(nobody, rules, [&](const flight& one, virtual_time) { return behind(one); }));
  for (const auto id : flights_.ids())
    if (!flights_.at(id).started)
      depart(flights_.at(id));
  go_on();
}

} // namespace mneme
