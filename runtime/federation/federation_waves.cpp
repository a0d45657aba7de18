// The federation's waves: real work that virtual time waits for. What runs together follows from virtual bookkeeping
// alone, and while a wave is out only what it cannot change goes on.
#include "runtime/base/tuning.hpp"
#include "runtime/federation/federation.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <limits>
namespace mneme {

// -- a wave begins ----------------------------------------------------------------------------------------------------

void federation::begin_wave(assignment_id top) {
  if (const auto failed = failures_.find(top); failed != failures_.end())
    end_failed(failed->second);
  else if (in_flight_.at(top).phase == assignment_phase::evicted)
    recompute(top);
  else if (start_queue_.size() > 0)
    start_waiting();
  else
    release_for(top);
}

/// All that is started is bound to be released as soon as virtual time needs any of it: a whole cohort, and nobody
/// else, with one job each, and room for what it makes. Then shards need not wait to be told.
bool federation::may_run_at_once() const {
  const bool some_unwanted = settings_.drops_late() && round_.deadline != never;
  if (settings_.is_async() || some_unwanted || !settings_.upload_size_known || pool_.observes() || !repeated_.empty() ||
      in_flight_.size() != start_queue_.size())
    return false;
  return start_queue_.weight_bytes() <= std::min(tuning::cached_outcomes_bytes, settings_.ahead_bytes_max);
}

void federation::start_waiting() {
  const bool at_once = may_run_at_once();
  for (auto s = static_cast<std::uint32_t>(settings_.shards);
       s-- > 0;) {                        // the first may share this thread: others begin
    auto starts = start_queue_.take({s}); // before it
    if (starts.assignments.empty())
      continue;
    for (const auto& started : starts.assignments)
      if (auto& owner = in_flight_.at(started.id); owner.phase == assignment_phase::waiting)
        owner.phase = assignment_phase::computing;
    starts.at_once = at_once;
    wave_.started(at_once);
    command(std::move(starts));
  }
  MNEME_CHECK(wave_.is_out());
  log_.mark(queue_.now());
}

void federation::release_for(assignment_id top) {
  const auto may_run = [&](const assignment_in_flight& owner, virtual_time due) {
    // What is due after its deadline is never wanted.
    return !owner.drops_out && !(settings_.drops_late() && owner.round == round_.place.round && due > round_.deadline);
  };
  auto batches = plan_batches(in_flight_.take_runnable(top, settings_.ahead_bytes_max, may_run), settings_.batching);
  log_.released(batches);
  send(std::move(batches));
}

void federation::send(std::vector<shard_batches> batches) {
  for (auto& at_shard : batches) {
    wave_.released();
    command(release{.to = at_shard.shard, .batches = std::move(at_shard.batches)});
  }
  MNEME_CHECK(wave_.is_out());
  log_.mark(queue_.now());
}

// -- what comes back --------------------------------------------------------------------------------------------------

void federation::take(wave_report& report) {
  if (over_)
    return;
  learn_durations(report);
  if (report.released)
    log_.released(wave_.listed({.shard = report.from, .batches = std::move(*report.released)}));
  learn_results(report.finished);
  if (!report.last)
    return advance();
  for (auto& why : report.failed)
    keep_failure(std::move(why));
  if (wave_.ends_with_report())
    end_wave();
}

/// How long the jobs take for which clients wait now, and when their outcomes are needed.
void federation::learn_durations(const wave_report& report) {
  std::vector<parked_job> parked;
  for (std::size_t first = 0, next = 0; first < report.issued.size(); first = next) {
    const auto id = report.issued[first].id;
    auto& owner = in_flight_.at(id.assignment);
    virtual_duration duration{}; // jobs of one stage run in parallel: the longest decides
    for (next = first; next < report.issued.size() && report.issued[next].id.assignment == owner.id; ++next)
      duration = std::max(duration, report.issued[next].takes);
    if (owner.looks && !settings_.observing_costs)
      duration = {};
    if (owner.upload_size_known && id.stage > 0)
      fail_known_size(owner, id);
    if (!owner.fits(id.stage, duration)) {
      wave_.failed({.last_job = id,
                    .client = owner.client,
                    .round = owner.round,
                    .reason = "this round took another time before: the checkpoint is not of this run"});
      continue;
    }
    auto due = owner.learn(id.stage, duration);
    if (owner.upload_size_known && !report.released) // the result is not needed before the upload arrives
      due += upload_time(owner);
    for (auto i = first; i < next; ++i)
      if (report.released)
        in_flight_.hold(owner, report.issued[i].bytes);
      else
        parked.push_back({.job = report.issued[i], .due = due, .shard = report.from});
  }
  in_flight_.park(std::move(parked));
}

void federation::learn_results(std::vector<finished_round>& finished) {
  for (auto& done : finished) {
    auto& owner = in_flight_.at(done.id);
    if (owner.upload_size_known && owner.upload_bytes != done.bytes)
      fail_known_size(owner, {.assignment = owner.id});
    owner.upload_bytes = done.bytes;
    owner.proxy_bytes = done.proxy_bytes;
    owner.result = std::move(done.result);
    owner.phase = assignment_phase::finished;
    results_.added(owner);
  }
}

/// The run fails when virtual time needs the answer that there is not, as it would had nothing run ahead: who is
/// blamed, and when, depends on no budget. A round that fails where it did not before, and who is interrupted, end the
/// wave.
void federation::keep_failure(round_failure why) {
  auto* const owner = in_flight_.find(why.last_job.assignment);
  if (!owner || owner->is_behind() || why.reason == interrupted_text)
    return wave_.failed(std::move(why));
  in_flight_.forget_jobs(*owner);
  failures_.try_emplace(owner->id, std::move(why));
}

/// A method promises what its clients do not keep.
void federation::fail_known_size(const assignment_in_flight& owner, job_id at) {
  wave_.failed({.last_job = at,
                .client = owner.client,
                .round = owner.round,
                .reason = "the method says that upload sizes are known (method_needs::upload_size_known), but this "
                          "round asks for a second job or uploads something else than weights; needs() in the "
                          "method's file has to say that they are not"});
}

/// How a failed run ends does not depend on how far its last wave had come.
void federation::end_wave() {
  if (const auto& why = wave_.failure(); why && why->reason == interrupted_text)
    return repeated_.empty() ? stop_at(next_step::event) : interrupt();
  if (const auto& why = wave_.failure()) {
    failed_at_ = log_.return_to_mark();
    return end_failed(*why);
  }
  if (!repeated_.empty())
    return catch_up();
  if (results_.evict(in_flight_, *settings_.clients) && !std::exchange(told_of_eviction_, true))
    command(run_warning{"uploads that wait for their virtual time hold more than worker.ahead_max allows; those that "
                        "arrive last are computed again, which a larger value spares"});
  advance();
}

void federation::end_failed(const round_failure& why) {
  in_flight_ = {};
  const auto& job = why.last_job;
  finish(run_status::failed, fmt::format("client {}, round {}, job {}.{}.{}: {}", why.client.value, why.round.value + 1,
                                         job.assignment.value, job.stage, job.step, why.reason));
}

// -- rounds that run again --------------------------------------------------------------------------------------------

/// Computes `top`'s result again, and those that arrive next as far as there is room.
void federation::recompute(assignment_id top) {
  repeated_ = results_.to_recompute(top, in_flight_, *settings_.clients);
  std::sort(repeated_.begin(), repeated_.end());
  for (const auto id : repeated_) {
    auto& owner = in_flight_.at(id);
    owner.phase = assignment_phase::recomputing;
    owner.stages_run = 0;
  }
  next_ = next_step::event;
  run_again();
}

void federation::run_again() {
  for (const auto id : repeated_)
    queue_start(in_flight_.at(id));
  if (start_queue_.size() == 0)
    catch_up();
  else
    start_waiting();
}

/// Brings rounds that run again to the job for which they waited, or to their result; jobs are not counted twice. Then
/// what is parked is what was parked, and the run goes on as if nothing had happened.
void federation::catch_up() {
  if (stopping_ && !repeated_.empty() && events_handled_ == 0) // the checkpoint on the disk is still the newest
    return finish(run_status::interrupted);
  constexpr assignment_id nobody{std::numeric_limits<std::uint64_t>::max()};
  constexpr auto any = std::numeric_limits<std::int64_t>::max();
  const batch_rules rules{.workers = settings_.batching.workers,
                          .balance_over_workers = settings_.batching.balance_over_workers};
  std::erase_if(repeated_, [&](assignment_id id) { return !in_flight_.at(id).is_behind(); });
  if (!repeated_.empty())
    return send(plan_batches(
        in_flight_.take_runnable(nobody, any,
                                 [](const assignment_in_flight& owner, virtual_time) { return owner.is_behind(); }),
        rules));
  for (const auto id : in_flight_.ids())
    if (auto& owner = in_flight_.at(id); owner.phase == assignment_phase::catching_up)
      owner.phase = assignment_phase::computing;
    else if (owner.phase == assignment_phase::waiting)
      queue_start(owner);
  go_on();
}

} // namespace mneme
