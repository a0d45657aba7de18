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
  return fmt::format("names assignment {}, which is not at its shard", id.value);
}

} // namespace

// -- from the federation ----------------------------------------------------------------------------------------------

void shard_journal::take(command order) {
  if (host_ != host_state::well)
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

std::string shard_journal::take(wave_report report) {
  auto wrong = wrong_with(report);
  if (wrong.empty())
    accept(std::move(report));
  return wrong;
}

void shard_journal::accept(wave_report report) {
  if (host_ == host_state::repeating)
    return repeat(report);
  note(report);
  const bool ends = report.last, settled = host_ == host_state::settling;
  if (!settled)
    reports_.push_back(std::move(report));
  if (!ends)
    return;
  end_wave();
  host_ = host_state::well;
  go_on();
}

/// Checks that the report contains only pending rounds, each once. The last report must contain all of them.
std::string shard_journal::wrong_with(const wave_report& report) const {
  if (!awaits_host())
    return "reports what nobody asked for";
  std::vector<assignment_id> ended;
  ended.reserve(report.finished.size() + report.failed.size());
  if (auto wrong = wrong_with_ends(report, ended); !wrong.empty())
    return wrong;
  std::size_t told = 0; // number of rounds that report jobs of their next stage
  if (auto wrong = wrong_with_jobs(report.issued, told); !wrong.empty())
    return wrong;
  for (std::size_t i = 0, e = 0; i < report.issued.size() && e < ended.size();) // both lists are ascending
    if (const auto id = report.issued[i].id.assignment; id == ended[e])
      return fmt::format("tells of assignment {} twice", id.value);
    else
      id < ended[e] ? ++i : ++e;
  if (report.released)
    if (auto wrong = wrong_with_released(report); !wrong.empty())
      return wrong;
  const auto answered =
      ended.size() + (report.released ? 0 : told); // a round whose jobs run immediately is pending again
  if (report.last && answered != rounds_owed())
    return fmt::format("ends its wave and owes {} rounds", rounds_owed() - answered);
  return {};
}

std::string shard_journal::wrong_with_round(assignment_id id) const {
  const auto* const round = rounds_.find(id);
  if (!round)
    return unknown(id);
  const bool is_owed = host_ == host_state::repeating ? unrepeated_.contains(id) : round->is_owed();
  if (!is_owed || host_ == host_state::settling)
    return fmt::format("goes on with assignment {} before its time", id.value);
  return {};
}

/// Checks the ended rounds of a report. @param ended receives their ids, ascending
std::string shard_journal::wrong_with_ends(const wave_report& report, std::vector<assignment_id>& ended) const {
  for (const auto& finished : report.finished) {
    if (!ended.empty() && !(ended.back() < finished.id))
      return fmt::format("tells of assignment {} out of its order", finished.id.value);
    if (auto wrong = wrong_with_round(finished.id); !wrong.empty())
      return wrong;
    if (host_ == host_state::repeating && rounds_.by_id().at(finished.id).told)
      return fmt::format("ends assignment {} before its time", finished.id.value);
    ended.push_back(finished.id);
  }
  for (const auto& failure : report.failed) {
    const auto id = failure.last_job.assignment;
    if (auto wrong = wrong_with_round(id); !wrong.empty())
      return wrong;
    if (failure.client != rounds_.by_id().at(id).given.client)
      return fmt::format("blames another client for assignment {} than was given it", id.value);
    const bool is_told = host_ == host_state::repeating && rounds_.by_id().at(id).told;
    if (!wave_ || (is_told && failure.reason != interrupted_text))
      return "cannot repeat a round: " + failure.reason;
    ended.push_back(id);
  }
  if (report.failed.empty())
    return {};
  std::sort(ended.begin(), ended.end());
  const auto twice = std::adjacent_find(ended.begin(), ended.end());
  return twice == ended.end() ? std::string() : fmt::format("tells of assignment {} twice", twice->value);
}

std::string shard_journal::wrong_with_released(const wave_report& report) const {
  std::vector<job_id> listed;
  listed.reserve(report.issued.size());
  bool has_empty = false;
  for (const auto& batch : *report.released) {
    has_empty = has_empty || batch.empty();
    listed.insert(listed.end(), batch.begin(), batch.end());
  }
  std::sort(listed.begin(), listed.end());
  const auto same = [](const job_id& id, const issued_job& job) { return id == job.id; };
  if (has_empty || host_ != host_state::well || !wave_->at_once || wave_->is_listed ||
      !std::equal(listed.begin(), listed.end(), report.issued.begin(), report.issued.end(), same))
    return "lists other batches than it was asked for";
  return {};
}

/// Checks that stages follow one another, and that stages of a rerun round equal the earlier ones.
/// @param rounds receives the number of rounds
std::string shard_journal::wrong_with_jobs(const std::vector<issued_job>& issued, std::size_t& rounds) const {
  std::string wrong;
  std::optional<assignment_id> before;
  each_round(issued, [&](std::span<const issued_job> jobs) {
    const auto id = jobs.front().id.assignment;
    ++rounds;
    if (!wrong.empty())
      return;
    if (before && !(*before < id)) {
      wrong = fmt::format("tells of assignment {} out of its order", id.value);
      return;
    }
    before = id;
    wrong = wrong_with_round(id);
    if (!wrong.empty())
      return;
    const auto& kept = rounds_.by_id().at(id);
    const auto stage = stages_told(id);
    for (std::uint32_t step = 0; step < jobs.size(); ++step)
      if (jobs[step].id != job_id{id, stage, step})
        wrong = fmt::format("has a stage of assignment {} that is not its next one", id.value);
    if (host_ == host_state::repeating && kept.told && stage == kept.stage() && jobs.size() != kept.jobs.size())
      wrong = fmt::format("takes another course with assignment {} than before", id.value);
  });
  return wrong;
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

const assignment* shard_journal::given(assignment_id id) const {
  const auto* const round = rounds_.find(id);
  return round ? &round->given : nullptr;
}

std::uint32_t shard_journal::stages_told(assignment_id id) const {
  return host_ == host_state::repeating ? repeated_.stages_of(id) : rounds_.by_id().at(id).stages();
}

// -- change of host ---------------------------------------------------------------------------------------------------

void shard_journal::host_lost() {
  host_ = host_state::none;
  commands_.clear();
  rounds_.forget_wave();
}

void shard_journal::host_found() {
  MNEME_CHECK(host_ == host_state::none, shard_.value);
  host_ = host_state::well;
  repeated_.clear();
  const auto& rounds = rounds_.by_id();
  for (const auto& [id, round] : rounds)
    repeated_.add(id, round.stages());
  unrepeated_.clear();
  rounds_.count_owed();
  answer_ = {.from = shard_};
  if (rounds.empty()) {
    if (wave_)
      reports_.push_back({.from = shard_}); // everything had been reported, except the end of the wave
    end_wave();
    return go_on();
  }
  auto again = rounds_.as_given();
  if (std::any_of(rounds.begin(), rounds.end(), [](const auto& kept) { return kept.second.told; })) {
    host_ = host_state::repeating;
    for (const auto& [id, round] : rounds)
      unrepeated_.insert(id);
  } else
    again.at_once = wave_->at_once && !wave_->is_listed; // otherwise the federation already has their jobs
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
    unrepeated_.erase(jobs.front().id.assignment);
    std::vector<parked_job> waiting;
    for (const auto& job : jobs)
      waiting.push_back({.job = job, .shard = shard_});
    repeated_.waits_for(std::move(waiting));
  });
  // Ended rounds are kept until all have caught up, because this host may be lost, too.
  for (auto& finished : report.finished) {
    repeated_.ended(finished.id);
    unrepeated_.erase(finished.id);
    answer_.finished.push_back(std::move(finished));
  }
  for (auto& failure : report.failed) {
    repeated_.ended(failure.last_job.assignment);
    unrepeated_.erase(failure.last_job.assignment);
    answer_.failed.push_back(std::move(failure));
  }
  if (!report.last)
    return;
  const auto behind = repeated_.take_behind();
  if (behind.empty())
    return settle();
  for (const auto& waiting : behind)
    unrepeated_.insert(waiting.job.id.assignment);
  commands_.push_back(release{.to = shard_, .batches = batches_of(behind)});
}

/// Called when all rounds have caught up: sends the pending reports, and runs released jobs again.
void shard_journal::settle() {
  for (const auto& [id, round] : rounds_.by_id()) {
    const auto& jobs = repeated_.jobs_of(id);
    for (std::size_t step = 0; step < jobs.size(); ++step)
      if (round.told)
        rounds_.rekey(id, step, jobs[step].job);
      else
        answer_.issued.push_back(jobs[step].job);
  }
  repeated_.clear();
  note(answer_);
  rounds_.count_owed();
  host_ = wave_ ? host_state::well : host_state::settling;
  const auto lost = rounds_.released_jobs(); // whether or not a wave depends on them
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
  host_ = host_state::well;
  go_on();
}

/// Applies the commands that arrived while the shard had no host.
void shard_journal::go_on() {
  for (auto& order : std::exchange(waiting_, {}))
    take(std::move(order));
}

} // namespace mneme
