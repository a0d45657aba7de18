#include "runtime/federation/shard_journal.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

/// Groups jobs of one shard into batches. On a CPU the grouping affects no result bits.
std::vector<composition> batches_of(const std::vector<parked_job>& jobs) {
  std::vector<composition> batches;
  for (auto& planned : plan_batches(jobs, {}))
    batches = std::move(planned.batches);
  return batches;
}

std::string unknown(assignment_id id) {
  return fmt::format("names assignment {}, which its shard does not have", id.value);
}

} // namespace

// -- from the federation ----------------------------------------------------------------------------------------------

void shard_journal::record(command order) {
  if (host_ != host_state::healthy)
    return waiting_.push_back(std::move(order));
  std::visit([this](const auto& given) { begin(given); }, order);
  commands_.push_back(std::move(order));
}

void shard_journal::begin(const start_rounds& wave) {
  MNEME_CHECK(!wave_, shard_.value);
  wave_.emplace(open_wave{.at_once = wave.at_once});
  rounds_.start(wave);
}

void shard_journal::begin(const release& order) {
  MNEME_CHECK(!wave_, shard_.value);
  wave_.emplace(open_wave{});
  rounds_.release(order.batches);
}

void shard_journal::begin(const abandon& rounds) {
  for (const auto id : rounds.assignments)
    rounds_.end(id);
}

// -- from the host ----------------------------------------------------------------------------------------------------

std::string shard_journal::record(wave_report report) {
  auto error = report_error(report);
  if (error.empty())
    accept(std::move(report));
  return error;
}

void shard_journal::accept(wave_report report) {
  if (host_ == host_state::rerunning)
    return repeat(report);
  note(report);
  const bool ends = report.last, settled = host_ == host_state::catching_up;
  if (!settled)
    reports_.push_back(std::move(report));
  if (!ends)
    return;
  end_wave();
  host_ = host_state::healthy;
  apply_waiting();
}

/// Checks that the report contains only pending rounds, each once. The last report must contain all of them.
std::string shard_journal::report_error(const wave_report& report) const {
  if (!awaits_reply())
    return "was not requested";
  std::vector<assignment_id> ended;
  ended.reserve(report.finished.size() + report.failed.size());
  if (auto error = ends_error(report, ended); !error.empty())
    return error;
  std::size_t reported_rounds = 0; // number of rounds that report jobs of their next stage
  if (auto error = jobs_error(report.issued, reported_rounds); !error.empty())
    return error;
  for (std::size_t i = 0, e = 0; i < report.issued.size() && e < ended.size();) // both lists are ascending
    if (const auto id = report.issued[i].id.assignment; id == ended[e])
      return fmt::format("names assignment {} twice", id.value);
    else
      id < ended[e] ? ++i : ++e;
  if (report.released)
    if (auto error = released_jobs_error(report); !error.empty())
      return error;
  const auto answered =
      ended.size() + (report.released ? 0 : reported_rounds); // a round whose jobs run immediately remains pending
  if (report.last && answered != rounds_pending())
    return fmt::format("ends its wave, but {} rounds are missing", rounds_pending() - answered);
  return {};
}

std::string shard_journal::round_error(assignment_id id) const {
  const auto* const round = rounds_.find(id);
  if (!round)
    return unknown(id);
  const bool is_pending = host_ == host_state::rerunning ? not_rerun_.contains(id) : round->is_pending();
  if (!is_pending || host_ == host_state::catching_up)
    return fmt::format("continues assignment {} too early", id.value);
  return {};
}

/// Checks the ended rounds of a report. @param ended receives their ids, ascending
std::string shard_journal::ends_error(const wave_report& report, std::vector<assignment_id>& ended) const {
  for (const auto& finished : report.finished) {
    if (!ended.empty() && !(ended.back() < finished.id))
      return fmt::format("names assignment {} out of order", finished.id.value);
    if (auto error = round_error(finished.id); !error.empty())
      return error;
    if (host_ == host_state::rerunning && rounds_.by_id().at(finished.id).is_reported)
      return fmt::format("ends assignment {} too early", finished.id.value);
    ended.push_back(finished.id);
  }
  for (const auto& failure : report.failed) {
    const auto id = failure.last_job.assignment;
    if (auto error = round_error(id); !error.empty())
      return error;
    if (failure.client != rounds_.by_id().at(id).given.client)
      return fmt::format("names a wrong client for assignment {}", id.value);
    const bool is_reported = host_ == host_state::rerunning && rounds_.by_id().at(id).is_reported;
    if (!wave_ || (is_reported && failure.reason != interrupted_text))
      return "cannot rerun a round: " + failure.reason;
    ended.push_back(id);
  }
  if (report.failed.empty())
    return {};
  std::sort(ended.begin(), ended.end());
  const auto twice = std::adjacent_find(ended.begin(), ended.end());
  return twice == ended.end() ? std::string() : fmt::format("names assignment {} twice", twice->value);
}

std::string shard_journal::released_jobs_error(const wave_report& report) const {
  std::vector<job_id> listed;
  listed.reserve(report.issued.size());
  bool has_empty = false;
  for (const auto& batch : *report.released) {
    has_empty = has_empty || batch.empty();
    listed.insert(listed.end(), batch.begin(), batch.end());
  }
  std::sort(listed.begin(), listed.end());
  const auto same = [](const job_id& id, const issued_job& job) { return id == job.id; };
  if (has_empty || host_ != host_state::healthy || !wave_->at_once || wave_->is_listed ||
      !std::equal(listed.begin(), listed.end(), report.issued.begin(), report.issued.end(), same))
    return "lists batches that were not requested";
  return {};
}

/// Checks that stages follow one another, and that stages of a rerun round equal the earlier ones.
/// @param rounds receives the number of rounds
std::string shard_journal::jobs_error(const std::vector<issued_job>& issued, std::size_t& rounds) const {
  std::string error;
  std::optional<assignment_id> before;
  each_round(issued, [&](std::span<const issued_job> jobs) {
    const auto id = jobs.front().id.assignment;
    ++rounds;
    if (!error.empty())
      return;
    if (before && !(*before < id)) {
      error = fmt::format("names assignment {} out of order", id.value);
      return;
    }
    before = id;
    error = round_error(id);
    if (!error.empty())
      return;
    const auto& kept = rounds_.by_id().at(id);
    const auto stage = stages_reported(id);
    for (std::uint32_t step = 0; step < jobs.size(); ++step)
      if (jobs[step].id != job_id{id, stage, step})
        error = fmt::format("has a stage of assignment {} that is not its next one", id.value);
    if (host_ == host_state::rerunning && kept.is_reported && stage == kept.stage() && jobs.size() != kept.jobs.size())
      error = fmt::format("runs assignment {} differently than before", id.value);
  });
  return error;
}

void shard_journal::note(wave_report& report) {
  if (report.released)
    wave_->is_listed = true;
  using enum shard_rounds::job_state;
  rounds_.next_stage(report.issued, report.released ? released : parked);
  for (const auto& finished : report.finished)
    rounds_.end(finished.id);
  for (const auto& failure : report.failed)
    rounds_.end(failure.last_job.assignment);
}

void shard_journal::end_wave() {
  rounds_.end_wave();
  wave_.reset();
}

std::int64_t shard_journal::rounds_with_work() const {
  using enum shard_rounds::job_state;
  return std::count_if(rounds_.by_id().begin(), rounds_.by_id().end(), [](const auto& entry) {
    const auto& round = entry.second;
    return round.stage() > 0 ||
           std::any_of(round.jobs.begin(), round.jobs.end(), [](const auto& job) { return job.state != parked; });
  });
}

const assignment* shard_journal::given(assignment_id id) const {
  const auto* const round = rounds_.find(id);
  return round ? &round->given : nullptr;
}

std::uint32_t shard_journal::stages_reported(assignment_id id) const {
  return host_ == host_state::rerunning ? rerun_.stages_of(id) : rounds_.by_id().at(id).stages();
}

// -- change of host ---------------------------------------------------------------------------------------------------

void shard_journal::host_lost() {
  host_ = host_state::none;
  commands_.clear();
  rounds_.clear_released();
}

void shard_journal::host_found() {
  MNEME_CHECK(host_ == host_state::none, shard_.value);
  host_ = host_state::healthy;
  rerun_.clear();
  const auto& rounds = rounds_.by_id();
  for (const auto& [id, round] : rounds)
    rerun_.add(id, round.stages());
  not_rerun_.clear();
  rounds_.recount_pending();
  answer_ = {.from = shard_};
  if (rounds.empty()) {
    if (wave_)
      reports_.push_back({.from = shard_}); // the host had reported everything except the end of the wave
    end_wave();
    return apply_waiting();
  }
  auto again = rounds_.as_given();
  if (std::any_of(rounds.begin(), rounds.end(), [](const auto& kept) { return kept.second.is_reported; })) {
    host_ = host_state::rerunning;
    for (const auto& [id, round] : rounds)
      not_rerun_.insert(id);
  } else
    again.at_once = wave_->at_once && !wave_->is_listed; // otherwise the federation already has the jobs of these
                                                         // rounds
  commands_.push_back(std::move(again));
}

abandon shard_journal::change_host() {
  MNEME_CHECK(is_quiet() && commands_.empty(), shard_.value);
  abandon left{.to = shard_};
  for (const auto& [id, round] : rounds_.by_id())
    left.assignments.push_back(id);
  host_lost();
  host_found();
  return left;
}

void shard_journal::repeat(wave_report& report) {
  each_round(report.issued, [&](std::span<issued_job> jobs) {
    not_rerun_.erase(jobs.front().id.assignment);
    std::vector<parked_job> waiting;
    for (const auto& job : jobs)
      waiting.push_back({.job = job, .shard = shard_});
    rerun_.waits_for(std::move(waiting));
  });
  // Ended rounds are kept until all rounds have caught up, because this host may be lost, too.
  for (auto& finished : report.finished) {
    rerun_.ended(finished.id);
    not_rerun_.erase(finished.id);
    answer_.finished.push_back(std::move(finished));
  }
  for (auto& failure : report.failed) {
    rerun_.ended(failure.last_job.assignment);
    not_rerun_.erase(failure.last_job.assignment);
    answer_.failed.push_back(std::move(failure));
  }
  if (!report.last)
    return;
  const auto lagging = rerun_.take_lagging();
  if (lagging.empty())
    return finish_catch_up();
  for (const auto& waiting : lagging)
    not_rerun_.insert(waiting.job.id.assignment);
  commands_.push_back(release{.to = shard_, .batches = batches_of(lagging)});
}

/// Called when all rounds have caught up: sends the pending reports, and runs released jobs again.
void shard_journal::finish_catch_up() {
  for (const auto& [id, round] : rounds_.by_id()) {
    const auto& jobs = rerun_.jobs_of(id);
    for (std::size_t step = 0; step < jobs.size(); ++step)
      if (round.is_reported)
        rounds_.set_fuse_key(id, step, jobs[step].job);
      else
        answer_.issued.push_back(jobs[step].job);
  }
  rerun_.clear();
  note(answer_);
  rounds_.recount_pending();
  host_ = wave_ ? host_state::healthy : host_state::catching_up;
  const auto lost = rounds_.released_jobs(); // released jobs whose results were lost, whether or not a wave depends on
                                             // them
  answer_.last = lost.empty();
  if (wave_)
    reports_.push_back(std::exchange(answer_, {.from = shard_}));
  if (!lost.empty()) {
    auto batches = batches_of(lost);
    rounds_.release(batches);
    commands_.push_back(release{.to = shard_, .batches = std::move(batches)});
    return;
  }
  end_wave();
  host_ = host_state::healthy;
  apply_waiting();
}

/// Applies the commands that arrived while the shard had no host.
void shard_journal::apply_waiting() {
  for (auto& order : std::exchange(waiting_, {}))
    record(std::move(order));
}

} // namespace mneme
