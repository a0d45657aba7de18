#include "runtime/federation/wave_scheduler.hpp"
#include "runtime/base/tuning.hpp"
#include <algorithm>
namespace mneme {
namespace {

/// Failure of a client round that contradicts a property declared by its method.
round_failure broken_promise(const assignment_in_flight& owner, job_id at) {
  return {.last_job = at,
          .client = owner.client,
          .round = owner.round,
          .reason = "the method declares that upload sizes are known (method_needs::upload_size_known), but this round "
                    "requests a second job or uploads something other than weights; expected upload_size_known = false "
                    "in needs() of the method"};
}

} // namespace

wave_scheduler::wave_scheduler(const federation_settings& settings, const run_clock& clock, const current_round& round,
                               in_flight_table& in_flight, run_output& out)
    : settings_(settings), clock_(clock), round_(round), in_flight_(in_flight), out_(out),
      start_queue_(static_cast<std::size_t>(settings.shards)),
      results_(settings.results_bytes_max, settings.results_are_repeatable) {}

// -- assignments ------------------------------------------------------------------------------------------------------

void wave_scheduler::delivered(const assignment_in_flight& owner) {
  results_.removed(owner);
  if (wave_.is_out())
    results_.delivered_during_wave(owner);
}

void wave_scheduler::abandon(const std::vector<assignment_id>& ids) {
  std::vector<mneme::abandon> abandoned(static_cast<std::size_t>(settings_.shards));
  for (const auto id : ids) {
    const auto& owner = in_flight_.at(id);
    if (owner.has_result())
      results_.removed(owner);
    else if (owner.is_at_shard() && !failures_.contains(id))
      abandoned[shard_of(owner.client, abandoned.size()).value].assignments.push_back(id);
    in_flight_.erase(id);
    failures_.erase(id);
  }
  start_queue_.erase(ids);
  for (std::uint32_t s = 0; s < abandoned.size(); ++s)
    if (!abandoned[s].assignments.empty()) {
      abandoned[s].to = {s};
      out_.command(std::move(abandoned[s]));
    }
}

// -- needs of virtual time --------------------------------------------------------------------------------------------

bool wave_scheduler::can_handle() const {
  if (settings_.clients->devices().shares_links()) // the rates of a shared link depend on all earlier transfers
    return false;
  if (!wave_.is_known() || wave_.failure() || round_.wants_clients || is_rerunning() || !clock_.has_events())
    return false;
  const auto& next = clock_.next();
  const auto* const owner = in_flight_.find(next.assignment);
  if (!owner || clock_.is_stalled())
    return false;
  if (next.event_kind == federation_event::kind::stage_over)
    return owner->reply_arrived() && !owner->ends_without_upload();
  if (next.event_kind != federation_event::kind::arrival || next.where != party_id::server || !owner->has_result())
    return false;
  const bool ends_round = settings_.is_async() ? round_.folded + 1 == settings_.uploads_of_step()
                                               : owner->round == round_.info.round && round_.missing == 1;
  return !ends_round && results_.has_room_during_wave(*owner);
}

bool wave_scheduler::needs_outcome(const federation_event& next) const {
  const bool is_arrival = next.event_kind == federation_event::kind::arrival;
  if (!is_arrival && next.event_kind != federation_event::kind::stage_over)
    return false;
  const auto* const owner = in_flight_.find(next.assignment);
  return owner && !(is_arrival ? owner->has_result() : owner->reply_arrived());
}

const round_failure* wave_scheduler::failure_of(assignment_id top) const {
  const auto failed = failures_.find(top);
  return failed == failures_.end() ? nullptr : &failed->second;
}

void wave_scheduler::begin_wave(assignment_id top, bool only_cohort) {
  if (start_queue_.size() > 0)
    start_queued(only_cohort && may_run_at_once());
  else
    release_for(top);
}

/// True if shards may run all started jobs without waiting for a release. This requires that all these jobs would be
/// released anyway: one job for each client of the cohort, no other clients, and memory for all results.
bool wave_scheduler::may_run_at_once() const {
  const bool some_unwanted = settings_.drops_late() && round_.deadline != never;
  if (settings_.is_async() || some_unwanted || !settings_.upload_size_known || in_flight_.size() != start_queue_.size())
    return false;
  return start_queue_.weight_bytes() <= std::min(tuning::cached_outcomes_bytes, settings_.ahead_bytes_max);
}

void wave_scheduler::start_queued(bool at_once) {
  for (auto s = static_cast<std::uint32_t>(settings_.shards);
       s-- > 0;) {                        // highest shard first: shard 0 may run on this thread,
    auto starts = start_queue_.take({s}); // so the others have to start before it
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

void wave_scheduler::release_for(assignment_id top) {
  const auto may_run = [&](const assignment_in_flight& owner, virtual_time due) {
    // Results that are due after the deadline are never used.
    return !owner.drops_out && !(settings_.drops_late() && owner.round == round_.info.round && due > round_.deadline);
  };
  auto batches = plan_batches(in_flight_.take_runnable(top, settings_.ahead_bytes_max, may_run), settings_.batching);
  out_.log().released(batches);
  send(std::move(batches));
}

void wave_scheduler::send(std::vector<shard_batches> batches) {
  for (auto& at_shard : batches) {
    wave_.released();
    out_.command(release{.to = at_shard.shard, .batches = std::move(at_shard.batches)});
  }
  MNEME_CHECK(wave_.is_out());
  out_.mark();
}

// -- reruns -----------------------------------------------------------------------------------------------------------

void wave_scheduler::repeat(assignment_in_flight& owner, std::uint32_t stages) {
  owner.phase = assignment_phase::rerunning;
  rerun_.add(owner.id, stages);
}

bool wave_scheduler::is_rerun_complete() {
  if (const auto lagging = rerun_.take_lagging(); !lagging.empty()) {
    for (const auto& parked : lagging)
      in_flight_.hold(in_flight_.at(parked.job.id.assignment), parked.job.bytes);
    send(plan_batches(lagging, {.workers = settings_.batching.workers,
                                .balance_over_workers = settings_.batching.balance_over_workers}));
    return false;
  }
  for (const auto id : rerun_.ids())
    if (auto& owner = in_flight_.at(id); owner.phase == assignment_phase::rerunning) {
      owner.phase = assignment_phase::computing;
      in_flight_.park(std::move(rerun_.jobs_of(id)));
    }
  rerun_.clear();
  return true;
}

// -- reports ----------------------------------------------------------------------------------------------------------

wave_progress wave_scheduler::on_wave_report(wave_report& report) {
  record_durations(report);
  if (report.released)
    out_.log().released(wave_.listed({.shard = report.from, .batches = std::move(*report.released)}));
  record_results(report.finished);
  if (!report.last)
    return wave_progress::further;
  for (auto& error_text : report.failed)
    keep_failure(std::move(error_text));
  return wave_.ends_with_report() ? wave_progress::over : wave_progress::unchanged;
}

/// Records durations and due times of the jobs that clients now wait for.
void wave_scheduler::record_durations(const wave_report& report) {
  std::vector<parked_job> parked, of_stage;
  for (std::size_t first = 0, next = 0; first < report.issued.size(); first = next) {
    const auto id = report.issued[first].id;
    auto& owner = in_flight_.at(id.assignment);
    virtual_duration duration{}; // jobs of one stage run in parallel, so the longest counts
    for (next = first; next < report.issued.size() && report.issued[next].id.assignment == owner.id; ++next)
      duration = std::max(duration, report.issued[next].compute_duration);
    if (row_of(owner.activity_kind).is_free(settings_))
      duration = {};
    if (owner.upload_size_known && id.stage > 0)
      wave_.failed(broken_promise(owner, id));
    if (!owner.matches_duration(id.stage, duration)) {
      wave_.failed(
          {.last_job = id,
           .client = owner.client,
           .round = owner.round,
           .reason = "the durations of this round differ from those in the checkpoint: it belongs to another run"});
      continue;
    }
    auto due = owner.set_duration(id.stage, duration);
    if (owner.upload_size_known && !report.released) // such a result is needed only when the upload arrives
      due += owner.planned_upload_time(*settings_.clients);
    const bool repeats = owner.phase == assignment_phase::rerunning;
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

void wave_scheduler::record_results(std::vector<finished_round>& finished) {
  for (auto& done : finished) {
    auto& owner = in_flight_.at(done.id);
    if (owner.upload_size_known && owner.sends != done.bytes)
      wave_.failed(broken_promise(owner, {.assignment = owner.id}));
    if (owner.phase == assignment_phase::rerunning)
      rerun_.ended(owner.id);
    owner.sends = done.bytes;
    owner.result = std::move(done.result);
    owner.phase = assignment_phase::finished;
    results_.added(owner);
  }
}

/// Stores a failure until virtual time needs the missing result. The run thus reports the same client and time for
/// every budget. The wave fails immediately after an interruption, or if a rerun fails although its first run
/// succeeded.
void wave_scheduler::keep_failure(round_failure error_text) {
  const auto id = error_text.last_job.assignment;
  auto* const owner = in_flight_.find(id);
  if (!owner || rerun_.is_lagging(id) || error_text.reason == interrupted_text)
    return wave_.failed(std::move(error_text));
  in_flight_.forget_jobs(*owner);
  if (rerun_.has(id))
    rerun_.ended(id);
  failures_.try_emplace(id, std::move(error_text));
}

void wave_scheduler::make_room() {
  if (results_.evict(in_flight_, *settings_.clients) && !std::exchange(has_logged_eviction_, true))
    out_.command(run_warning{"uploads that wait for their virtual time hold more than worker.lookahead_memory allows; "
                             "the latest of them are computed again; a larger value avoids this"});
}

} // namespace mneme
