#include "runtime/federation/computing_ahead.hpp"
#include "runtime/base/tuning.hpp"
#include <algorithm>
namespace mneme {
namespace {

/// Failure for a client round that contradicts a property that its method declares.
round_failure broken_promise(const assignment_in_flight& owner, job_id at) {
  return {.last_job = at,
          .client = owner.client,
          .round = owner.round,
          .reason = "the method says that upload sizes are known (method_needs::upload_size_known), but this "
                    "round asks for a second job or uploads something else than weights; needs() in the "
                    "method's file has to say that they are not"};
}

} // namespace

computing_ahead::computing_ahead(const federation_settings& settings, const run_clock& clock,
                                 const current_round& round, in_flight_table& in_flight, run_output& out)
    : settings_(settings), clock_(clock), round_(round), in_flight_(in_flight), out_(out),
      start_queue_(static_cast<std::size_t>(settings.shards)),
      results_(settings.results_bytes_max, settings.results_are_repeatable) {}

// -- assignments ------------------------------------------------------------------------------------------------------

void computing_ahead::delivered(const assignment_in_flight& owner) {
  results_.removed(owner);
  if (wave_.is_out())
    results_.delivered_during_wave(owner);
}

void computing_ahead::abandon(const std::vector<assignment_id>& ids) {
  std::vector<mneme::abandon> told(static_cast<std::size_t>(settings_.shards));
  for (const auto id : ids) {
    const auto& owner = in_flight_.at(id);
    if (owner.has_result())
      results_.removed(owner);
    else if (owner.is_at_shard() && !failures_.contains(id))
      told[shard_of(owner.client, told.size()).value].assignments.push_back(id);
    in_flight_.erase(id);
    failures_.erase(id);
  }
  start_queue_.erase(ids);
  for (std::uint32_t s = 0; s < told.size(); ++s)
    if (!told[s].assignments.empty()) {
      told[s].to = {s};
      out_.command(std::move(told[s]));
    }
}

// -- needs of virtual time --------------------------------------------------------------------------------------------

bool computing_ahead::may_go_on() const {
  if (settings_.clients->devices().shares_links()) // a shared link's rates depend on all earlier transfers
    return false;
  if (!wave_.is_known() || wave_.failure() || round_.wants_clients || is_repeating() || !clock_.has_events())
    return false;
  const auto& next = clock_.next();
  const auto* const owner = in_flight_.find(next.assignment);
  if (!owner || clock_.is_dead_end())
    return false;
  if (next.event_kind == federation_event::kind::stage_over)
    return owner->answered() && !owner->ends_without_upload();
  if (next.event_kind != federation_event::kind::arrival || next.where != party_id::server || !owner->has_result())
    return false;
  const bool ends_round = settings_.is_async() ? round_.folded + 1 == settings_.uploads_of_step()
                                               : owner->round == round_.place.round && round_.missing == 1;
  return !ends_round && results_.has_room_during_wave(*owner);
}

bool computing_ahead::needs_answer(const federation_event& next) const {
  const bool is_arrival = next.event_kind == federation_event::kind::arrival;
  if (!is_arrival && next.event_kind != federation_event::kind::stage_over)
    return false;
  const auto* const owner = in_flight_.find(next.assignment);
  return owner && !(is_arrival ? owner->has_result() : owner->answered());
}

const round_failure* computing_ahead::failure_of(assignment_id top) const {
  const auto failed = failures_.find(top);
  return failed == failures_.end() ? nullptr : &failed->second;
}

void computing_ahead::begin_wave(assignment_id top, bool only_cohort) {
  if (start_queue_.size() > 0)
    start_waiting(only_cohort && may_run_at_once());
  else
    release_for(top);
}

/// True if shards may run all started jobs without waiting for a release. This requires that all of them would be
/// released anyway: one job for each client of the cohort, no other clients, and memory for all results.
bool computing_ahead::may_run_at_once() const {
  const bool some_unwanted = settings_.drops_late() && round_.deadline != never;
  if (settings_.is_async() || some_unwanted || !settings_.upload_size_known || in_flight_.size() != start_queue_.size())
    return false;
  return start_queue_.weight_bytes() <= std::min(tuning::cached_outcomes_bytes, settings_.ahead_bytes_max);
}

void computing_ahead::start_waiting(bool at_once) {
  for (auto s = static_cast<std::uint32_t>(settings_.shards);
       s-- > 0;) {                        // highest shard first: the first shard may run on this thread,
    auto starts = start_queue_.take({s}); // so the others must start before it
    if (starts.assignments.empty())
      continue;
    for (const auto& started : starts.assignments)
      if (auto& owner = in_flight_.at(started.id); owner.phase == assignment_phase::waiting)
        owner.phase = assignment_phase::computing;
    starts.at_once = at_once;
    wave_.started(at_once);
    out_.command(std::move(starts));
  }
  MNEME_CHECK(wave_.is_out());
  out_.mark();
}

void computing_ahead::release_for(assignment_id top) {
  const auto may_run = [&](const assignment_in_flight& owner, virtual_time due) {
    // Results that are due after the deadline are never used.
    return !owner.drops_out && !(settings_.drops_late() && owner.round == round_.place.round && due > round_.deadline);
  };
  auto batches = plan_batches(in_flight_.take_runnable(top, settings_.ahead_bytes_max, may_run), settings_.batching);
  out_.log().released(batches);
  send(std::move(batches));
}

void computing_ahead::send(std::vector<shard_batches> batches) {
  for (auto& at_shard : batches) {
    wave_.released();
    out_.command(release{.to = at_shard.shard, .batches = std::move(at_shard.batches)});
  }
  MNEME_CHECK(wave_.is_out());
  out_.mark();
}

// -- reruns -----------------------------------------------------------------------------------------------------------

void computing_ahead::repeat(assignment_in_flight& owner, std::uint32_t stages) {
  owner.phase = assignment_phase::repeating;
  rerun_.add(owner.id, stages);
}

bool computing_ahead::repeats_no_more() {
  if (const auto behind = rerun_.take_behind(); !behind.empty()) {
    for (const auto& parked : behind)
      in_flight_.hold(in_flight_.at(parked.job.id.assignment), parked.job.bytes);
    send(plan_batches(behind, {.workers = settings_.batching.workers,
                               .balance_over_workers = settings_.batching.balance_over_workers}));
    return false;
  }
  for (const auto id : rerun_.ids())
    if (auto& owner = in_flight_.at(id); owner.phase == assignment_phase::repeating) {
      owner.phase = assignment_phase::computing;
      in_flight_.park(std::move(rerun_.jobs_of(id)));
    }
  rerun_.clear();
  return true;
}

// -- reports ----------------------------------------------------------------------------------------------------------

wave_progress computing_ahead::take(wave_report& report) {
  learn_durations(report);
  if (report.released)
    out_.log().released(wave_.listed({.shard = report.from, .batches = std::move(*report.released)}));
  learn_results(report.finished);
  if (!report.last)
    return wave_progress::further;
  for (auto& why : report.failed)
    keep_failure(std::move(why));
  return wave_.ends_with_report() ? wave_progress::over : wave_progress::unchanged;
}

/// Records durations and due times of the jobs that clients now wait for.
void computing_ahead::learn_durations(const wave_report& report) {
  std::vector<parked_job> parked, of_stage;
  for (std::size_t first = 0, next = 0; first < report.issued.size(); first = next) {
    const auto id = report.issued[first].id;
    auto& owner = in_flight_.at(id.assignment);
    virtual_duration duration{}; // jobs of one stage run in parallel, so the longest counts
    for (next = first; next < report.issued.size() && report.issued[next].id.assignment == owner.id; ++next)
      duration = std::max(duration, report.issued[next].takes);
    if (row_of(owner.doing).is_free(settings_))
      duration = {};
    if (owner.upload_size_known && id.stage > 0)
      wave_.failed(broken_promise(owner, id));
    if (!owner.fits(id.stage, duration)) {
      wave_.failed({.last_job = id,
                    .client = owner.client,
                    .round = owner.round,
                    .reason = "this round took another time before: the checkpoint is not of this run"});
      continue;
    }
    auto due = owner.learn(id.stage, duration);
    if (owner.upload_size_known && !report.released) // the result is needed only when the upload arrives
      due += owner.planned_upload_time(*settings_.clients);
    const bool repeats = owner.phase == assignment_phase::repeating;
    for (auto i = first; i < next; ++i)
      if (report.released)
        in_flight_.hold(owner, report.issued[i].bytes);
      else
        (repeats ? of_stage : parked).push_back({.job = report.issued[i], .due = due, .shard = report.from});
    if (repeats)
      rerun_.waits_for(std::exchange(of_stage, {}));
  }
  in_flight_.park(std::move(parked));
}

void computing_ahead::learn_results(std::vector<finished_round>& finished) {
  for (auto& done : finished) {
    auto& owner = in_flight_.at(done.id);
    if (owner.upload_size_known && owner.sends != done.bytes)
      wave_.failed(broken_promise(owner, {.assignment = owner.id}));
    if (owner.phase == assignment_phase::repeating)
      rerun_.ended(owner.id);
    owner.sends = done.bytes;
    owner.result = std::move(done.result);
    owner.phase = assignment_phase::finished;
    results_.added(owner);
  }
}

/// Stores a failure until virtual time needs the missing result. The reported client and time are thus the same as
/// without computing ahead, for any budget. The wave fails immediately after an interruption, or if a rerun that had
/// succeeded before fails.
void computing_ahead::keep_failure(round_failure why) {
  const auto id = why.last_job.assignment;
  auto* const owner = in_flight_.find(id);
  if (!owner || rerun_.is_behind(id) || why.reason == interrupted_text)
    return wave_.failed(std::move(why));
  in_flight_.forget_jobs(*owner);
  if (rerun_.has(id))
    rerun_.ended(id);
  failures_.try_emplace(id, std::move(why));
}

void computing_ahead::make_room() {
  if (results_.evict(in_flight_, *settings_.clients) && !std::exchange(told_of_eviction_, true))
    out_.command(run_warning{"uploads that wait for their virtual time hold more than worker.ahead_max allows; those "
                             "that arrive last are computed again, which a larger value spares"});
}

} // namespace mneme
