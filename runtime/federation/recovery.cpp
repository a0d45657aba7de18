#include "runtime/federation/recovery.hpp"
#include "runtime/federation/persisted_values.hpp"
#include <algorithm>
namespace mneme {
namespace {

std::int64_t bytes_of(const client_result& result) {
  auto bytes = result.memory ? result.memory->bytes() : 0;
  for (const auto& party : parties)
    bytes += result.*party.part ? (result.*party.part)->bytes() : 0;
  return bytes;
}

} // namespace

// -- reruns -----------------------------------------------------------------------------------------------------------

void recovery::compute_for(assignment_id top) {
  if (in_flight_.at(top).phase != assignment_phase::evicted)
    return waves_.begin_wave(top, !dispatch_.pool().has_observers());
  auto ids = waves_.to_recompute(top);
  std::sort(ids.begin(), ids.end());
  for (const auto id : ids) {
    auto& owner = in_flight_.at(id);
    waves_.repeat(owner, rerun_tracker::to_result);
    dispatch_.start(owner);
  }
  waves_.start_queued();
}

bool recovery::begin_rerun() {
  if (!waves_.is_rerunning())
    return continue_rerun();
  for (const auto id : in_flight_.ids())
    if (const auto& owner = in_flight_.at(id); owner.phase == assignment_phase::rerunning)
      dispatch_.start(owner);
  waves_.start_queued();
  return false;
}

bool recovery::continue_rerun() {
  if (!waves_.is_rerun_complete())
    return false;
  for (const auto id : in_flight_.ids())
    if (const auto& owner = in_flight_.at(id); owner.phase == assignment_phase::waiting)
      dispatch_.start(owner);
  return true;
}

// -- checkpoints ------------------------------------------------------------------------------------------------------

void recovery::persist(archive& state, next_step& next) {
  state.section("time")(next)(clock_);
  dispatch_.persist(state);
  persist_assignments(state);
  if (settings_.clients->devices().shares_links())
    state.section("links")(links_);
  state.section("round")(round_);
  state.section("report")(out_.log());
  if (state.loading())
    check_loaded(next);
}

void recovery::persist_assignments(archive& state) {
  state.section("assignments");
  auto ids = in_flight_.ids();
  bool with_results = stores_results();
  state(ids)(with_results);
  for (const auto id : ids) {
    assignment_in_flight loaded;
    persist_assignment(state, state.loading() ? loaded : in_flight_.at(id), with_results);
    if (state.loading() && (loaded.id != id || in_flight_.find(id)))
      throw archive_error("has an assignment at the index of another");
    if (state.loading())
      in_flight_.add(std::move(loaded));
  }
}

/// Saves or loads one assignment. A result that is not saved is recomputed when it arrives in virtual time. A round
/// without a result is rerun up to the stage that it had reached.
void recovery::persist_assignment(archive& state, assignment_in_flight& saved, bool with_results) {
  MNEME_CHECK(saved.phase != assignment_phase::rerunning, saved.id.value); // no checkpoint is taken during a rerun
  auto phase = saved.has_result() && !with_results ? assignment_phase::evicted : saved.phase;
  std::vector<virtual_duration> stages(saved.stages.begin(), saved.stages.end());
  std::uint64_t reached = saved.stages_reached;
  state(saved.id)(saved.client)(saved.round)(saved.task)(saved.activity_kind)(saved.in)(phase)(saved.drops_out)(
      saved.horizon);
  state(stages)(reached)(saved.is_uploading)(saved.event_sequence);
  for (auto& bytes : saved.sends)
    state(bytes);
  state(saved.held_bytes);
  if (settings_.clients->devices().shares_links())
    state(saved.delay)(saved.upload_arrives)(saved.waits_for_link);
  if (phase == assignment_phase::finished)
    state(saved.result);
  if (!state.loading())
    return;
  check_assignment(saved, phase, stages, reached);
  saved.stages.assign(stages.begin(), stages.end());
  saved.stages_reached = reached;
  saved.upload_size_known = settings_.upload_size_known && saved.uploads();
  saved.phase = phase;
  dispatch_.restore_assignment(saved);
  if (saved.has_result())
    waves_.has_result(saved);
  else
    saved.held_bytes = 0; // counted when its jobs are released
  if (phase == assignment_phase::computing)
    waves_.repeat(saved, static_cast<std::uint32_t>(stages.size()));
}

/// True if results are saved, because they are small or the bits of a recomputed result could differ.
bool recovery::stores_results() {
  std::int64_t bytes = 0;
  for (const auto id : in_flight_.ids())
    if (const auto& owner = in_flight_.at(id); owner.has_result())
      bytes += bytes_of(owner.result);
  return !settings_.results_are_repeatable || bytes <= settings_.stored_results_bytes_max;
}

} // namespace mneme
