// The scheduler's waves: real work that virtual time waits for. What runs together follows from virtual bookkeeping
// alone, and while a wave is out only what it cannot change goes on.
#include "actors/scheduler/scheduler.hpp"
#include <algorithm>
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

void scheduler_state::begin_wave(assignment_id top) {
  if (flights_.at(top).given_up)
    recall(top);
  else if (to_start_.size() > 0)
    start_waiting();
  else
    release_for(top);
}

void scheduler_state::note_wave_start() {
  MNEME_CHECK(reports_missing_ > 0);
  wave_start_ = {.report = report_, .digest = digest_, .trace = trace_, .events = events_.size(), .at = queue_.now()};
}

/// Whether all that is started is bound to be released as soon as virtual time needs any of it: a whole cohort, and
/// nobody else, with one job each, and room for what it makes. Then shards need not wait to be told.
bool scheduler_state::may_run_at_once() {
  constexpr std::int64_t bytes_max = std::int64_t{16} << 20; // of larger ones the first to arrive are computed first
  const bool some_unwanted = world_->what.rounds.late == late_policy::drop && deadline_at_ != virtual_time::max();
  if (is_async() || some_unwanted || !world_->method->foretells_uploads() || flights_.size() != to_start_.size() ||
      !replays_.empty())
    return false;
  return to_start_.weight_bytes() <= std::min(bytes_max, world_->what.worker.ahead_max.bytes);
}

void scheduler_state::start_waiting() {
  const bool at_once = may_run_at_once();
  for (auto s = peers_.shards.size(); s-- > 0;) { // the first one shares this thread: the others can begin before it
    auto wave = to_start_.take({static_cast<std::uint32_t>(s)});
    if (wave.all.empty())
      continue;
    for (const auto& one : wave.all)
      flights_.at(one.id).started = true;
    wave.at_once = at_once;
    starts_missing_ += at_once ? 1 : 0;
    ++reports_missing_;
    self_->send(peers_.shards[s], std::move(wave));
  }
  note_wave_start();
}

void scheduler_state::release_for(assignment_id top) {
  const bool drops_late = world_->what.rounds.late == late_policy::drop;
  auto may_run = [&](const flight& one, virtual_time due) { // what is due after its deadline is never wanted
    return !one.vanishes && !(drops_late && one.round == place_.round && due > deadline_at_);
  };
  auto batches = flights_.release(top, rules_of(*world_), may_run);
  count(batches);
  send(std::move(batches));
}

/// Replays are not counted.
void scheduler_state::count(const std::map<shard_id, std::vector<composition>>& batches) {
  for (const auto& [shard, all] : batches)
    for (const auto& one : all) {
      ++report_.batches;
      report_.jobs += std::ssize(one);
      for (std::size_t i = 0; world_->trace && i < one.size(); ++i) {
        trace_.add(static_cast<std::uint64_t>(i));
        trace_.add(one[i].assignment.value);
        trace_.add((std::uint64_t{one[i].stage} << 32) | one[i].step);
      }
    }
}

void scheduler_state::send(std::map<shard_id, std::vector<composition>> batches) {
  for (auto& [shard, all] : batches) {
    ++reports_missing_;
    self_->send(peers_.shards[shard.value], release{std::move(all)});
  }
  note_wave_start();
}

/// Reports come in any order, and what is done with one does not depend on the others.
void scheduler_state::take(wave_report& report) {
  if (over_)
    return;
  learn(report);
  if (report.released) {
    run_at_once_[report.from] = std::move(*report.released);
    if (--starts_missing_ == 0)
      count(std::exchange(run_at_once_, {}));
  }
  for (auto& done : report.finished) {
    auto& one = flights_.at(done.id);
    if (one.foretold && one.upload_bytes != done.bytes)
      fail_foretelling(one, {.assignment = one.id});
    one.upload_bytes = done.bytes;
    one.result = std::move(done.result);
    result_bytes_ += one.upload_bytes;
  }
  if (!report.last)
    return advance();
  for (auto& why : report.failed)
    if (!failure_ || why.last_job < failure_->last_job)
      failure_ = std::move(why);
  if (--reports_missing_ == 0)
    end_wave();
}

/// How long the jobs take for which clients wait now, and when their outcomes are needed.
void scheduler_state::learn(const wave_report& report) {
  std::vector<parked_job> parked;
  for (std::size_t first = 0, next = 0; first < report.issued.size(); first = next) {
    auto& one = flights_.at(report.issued[first].id.assignment);
    virtual_duration duration{}; // jobs of one stage run in parallel: the longest decides
    for (next = first; next < report.issued.size() && report.issued[next].id.assignment == one.id; ++next)
      duration = std::max(duration, report.issued[next].takes);
    if (one.foretold && report.issued[first].id.stage > 0)
      fail_foretelling(one, report.issued[first].id);
    auto due = one.learn(report.issued[first].id.stage, duration);
    if (one.foretold) // nobody asks before the upload arrives
      due += world_->people->upload_time(one.client, one.upload_bytes);
    for (auto i = first; i < next; ++i)
      if (report.released)
        flights_.hold(one, report.issued[i].bytes);
      else
        parked.push_back({.job = report.issued[i], .due = due, .shard = report.from});
  }
  flights_.park(std::move(parked));
}

/// A method that promises what its clients do not keep.
void scheduler_state::fail_foretelling(const flight& one, job_id at) {
  if (!failure_ || at < failure_->last_job)
    failure_ = round_failure{.last_job = at,
                             .client = one.client,
                             .round = one.round,
                             .what = "the method foretells its uploads (strategy::foretells_uploads), but this round "
                                     "asks for a second job or uploads something else than weights; the method's "
                                     "file has to override it with false"};
}

void scheduler_state::end_wave() {
  if (failure_) {
    forget_wave();
    const auto& why = *failure_;
    return finish(run_status::failed,
                  "client " + std::to_string(why.client.value) + ", round " + std::to_string(why.round.value + 1) +
                      ", job " + std::to_string(why.last_job.assignment.value) + "." +
                      std::to_string(why.last_job.stage) + "." + std::to_string(why.last_job.step) + ": " + why.what);
  }
  if (!replays_.empty())
    return replay();
  give_up_results();
  advance();
}

/// How a failed run ends does not depend on how far the wave had come.
void scheduler_state::forget_wave() {
  report_ = wave_start_.report;
  digest_ = wave_start_.digest;
  trace_ = wave_start_.trace;
  events_.resize(wave_start_.events);
  flights_ = {};
}

} // namespace mneme
