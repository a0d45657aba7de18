// The federation's checkpoints: what it takes to go on. A coroutine is never saved: a client's round is a pure
// function, so it runs again from its assignment.
#include "runtime/federation/federation.hpp"
#include "runtime/federation/persisted_values.hpp"
namespace mneme {
namespace {

std::int64_t bytes_of(const client_result& result) {
  auto bytes = result.memory ? result.memory->bytes() : 0;
  for (const auto& party : parties)
    bytes += result.*party.part ? (result.*party.part)->bytes() : 0;
  return bytes;
}

} // namespace

// -- taking one -------------------------------------------------------------------------------------------------------

void federation::go_on() {
  switch (next_) {
  case next_step::task:
    return begin_task({round_.place.task.value + 1});
  case next_step::round:
    return begin_round();
  case next_step::event:
    return advance();
  }
}

/// Called once after each server step.
void federation::checkpoint_then_go_on(next_step next) {
  next_ = next;
  const auto every = settings_.checkpoint.every;
  checkpoint_due_ = checkpoint_due_ || (every > 0 && log_.report().rounds % every == 0);
  const bool may_take = settings_.checkpoint.force || (checkpoints_allowed_ && keeps_missing_ == 0);
  if (!checkpoint_due_ || !may_take)
    return go_on();
  checkpoint_due_ = false;
  take_checkpoint(settings_.checkpoint.force);
}

/// Called again while the last checkpoint is taken, if the server answers to uploads it was handed for it.
void federation::stop_at(next_step next) {
  if (std::exchange(ending_, true))
    return;
  next_ = next;
  if (settings_.checkpoint.every > 0)
    take_checkpoint(true);
  else
    after_checkpoint();
}

/// All that happened so far has been told to server and recorder before they are asked for their state.
void federation::take_checkpoint(bool wait_until_kept) {
  flush_events();
  hand_over_deliveries();
  checkpoints_allowed_ = false;
  waits_until_kept_ = wait_until_kept;
  ++keeps_missing_;
  archive state;
  try {
    persist(state);
  } catch (const std::exception& e) { // the file that holds what memory has no room for can fail
    return fail(e.what());
  }
  asked_ = 0;
  command(save_state{.so_far = std::move(state)});
}

/// The parties are asked in turn, the server first. @returns if there is another one, which is party_asked() then
bool federation::asks_next_party() {
  if (asked_ == settings_.further_parties.size()) {
    asked_ = 0;
    return false;
  }
  ++asked_;
  return true;
}

void federation::take(saved_state& state) {
  if (over_)
    return;
  if (asks_next_party())
    return command(save_state{.to = party_asked(), .so_far = std::move(state.state)});
  command(keep_state{std::move(state.state)});
  if (!waits_until_kept_)
    after_checkpoint();
}

void federation::kept() {
  MNEME_CHECK(keeps_missing_ > 0);
  if (--keeps_missing_ == 0 && std::exchange(waits_until_kept_, false) && !over_)
    after_checkpoint();
}

void federation::after_checkpoint() {
  if (ending_)
    finish(run_status::interrupted);
  else
    go_on();
}

// -- what is saved ----------------------------------------------------------------------------------------------------

void federation::persist(archive& state) {
  state.section("time")(next_)(queue_)(churn_at_)(next_assignment_)(next_sequence_)(fruitless_events_);
  state.section("clients")(pool_);
  persist_memories(state);
  persist_assignments(state);
  state.section("round")(round_);
  state.section("report")(log_);
}

void federation::persist_memories(archive& state) {
  std::uint64_t count = memories_.size();
  state.section("memories")(count);
  if (!state.loading())
    memories_.each([&](client_id client, memory_ref memory) { state(client)(memory); });
  for (std::uint64_t i = 0; state.loading() && i < count; ++i) {
    client_id client;
    memory_ref memory;
    state(client)(memory);
    if (client.value >= settings_.clients->size())
      throw archive_error("remembers what a client knows that there is not");
    memories_.put(client, std::move(memory));
  }
}

void federation::persist_assignments(archive& state) {
  state.section("assignments");
  auto ids = in_flight_.ids();
  bool with_results = stores_results();
  state(ids)(with_results);
  for (const auto id : ids) {
    assignment_in_flight loaded;
    persist_assignment(state, state.loading() ? loaded : in_flight_.at(id), with_results);
    if (state.loading() && (loaded.id != id || in_flight_.find(id)))
      throw archive_error("has an assignment in the place of another");
    if (state.loading())
      in_flight_.add(std::move(loaded));
  }
}

/// A result that is not stored is computed again when its time has come; a round that has none runs again up to where
/// it was.
void federation::persist_assignment(archive& state, assignment_in_flight& saved, bool with_results) {
  MNEME_CHECK(!saved.runs_again(), saved.id.value); // no checkpoint is taken meanwhile
  auto phase = saved.has_result() && !with_results ? assignment_phase::evicted : saved.phase;
  std::vector<virtual_duration> stages(saved.stages.begin(), saved.stages.end());
  std::uint64_t reached = saved.stages_reached;
  state(saved.id)(saved.client)(saved.round)(saved.task)(saved.doing)(saved.in)(phase)(saved.drops_out)(saved.horizon);
  state(stages)(reached)(saved.is_uploading)(saved.event_sequence);
  for (auto& bytes : saved.sends)
    state(bytes);
  state(saved.held_bytes);
  if (phase == assignment_phase::finished)
    state(saved.result);
  if (!state.loading())
    return;
  expect_possible(saved, phase, stages, reached);
  saved.stages.assign(stages.begin(), stages.end());
  saved.stages_reached = reached;
  saved.upload_size_known = settings_.upload_size_known && saved.uploads();
  saved.phase = phase == assignment_phase::computing ? assignment_phase::catching_up : phase;
  pool_.assigned(saved.client, saved.id);
  if (saved.has_result())
    results_.added(saved);
  else
    saved.held_bytes = 0; // counted again as its jobs are released
  if (saved.phase == assignment_phase::catching_up)
    repeated_.push_back(saved.id);
}

/// Where bits depend on the batch, a result computed again might be another.
bool federation::stores_results() {
  std::int64_t bytes = 0;
  for (const auto id : in_flight_.ids())
    if (const auto& owner = in_flight_.at(id); owner.has_result())
      bytes += bytes_of(owner.result);
  return !settings_.results_are_repeatable || bytes <= settings_.stored_results_bytes_max;
}

// -- going on ---------------------------------------------------------------------------------------------------------

void federation::resume(archive saved) {
  const auto refuse = [this](const std::string& why) {
    in_flight_ = {}; // no shard knows of them
    fail(why);
  };
  try {
    persist(saved);
    expect_sound();
  } catch (const archive_error& e) {
    return refuse(std::string("the checkpoint cannot be read: it ") + e.what());
  } catch (const std::exception& e) {
    return refuse(e.what());
  }
  asked_ = 0;
  command(restore_state{.rest = std::move(saved)});
}

void federation::take(restored_state& state) {
  if (over_)
    return;
  if (asks_next_party())
    return command(restore_state{.to = party_asked(), .rest = std::move(state.rest)});
  try {
    state.rest.expect_end();
  } catch (const archive_error& e) {
    in_flight_ = {}; // no shard knows of them
    return fail(std::string("the checkpoint cannot be read: it ") + e.what());
  }
  run_again();
}

} // namespace mneme
