#include "runtime/federation/shard_rounds.hpp"
#include <algorithm>
#include <utility>
namespace mneme {

const shard_rounds::kept_round* shard_rounds::find(assignment_id id) const {
  const auto round = rounds_.find(id);
  return round == rounds_.end() ? nullptr : &round->second;
}

start_rounds shard_rounds::as_given() const {
  start_rounds again{.to = shard_};
  for (const auto& [id, round] : rounds_) {
    again.assignments.push_back(round.given);
    again.ready.push_back(round.ready);
  }
  return again;
}

std::vector<parked_job> shard_rounds::released_jobs() const {
  std::vector<parked_job> released;
  for (const auto& [id, round] : rounds_)
    for (const auto& job : round.jobs)
      if (job.state != job_state::parked)
        released.push_back({.job = job.issued, .shard = shard_});
  return released;
}

void shard_rounds::start(const start_rounds& wave) {
  for (std::size_t i = 0; i < wave.assignments.size(); ++i)
    rounds_[wave.assignments[i].id] = {.given = wave.assignments[i], .ready = wave.ready.at(i)};
  pending_ += wave.assignments.size();
}

void shard_rounds::end(assignment_id id) {
  const auto round = rounds_.find(id);
  if (round == rounds_.end())
    return;
  pending_ -= round->second.is_pending() ? 1 : 0;
  rounds_.erase(round);
}

void shard_rounds::release(const std::vector<composition>& batches) {
  for (const auto& batch : batches)
    for (const auto& id : batch) {
      auto& round = rounds_.at(id.assignment);
      auto& job = round.jobs.at(id.step);
      if (std::exchange(job.state, job_state::released) == job_state::parked && --round.parked == 0)
        ++pending_;
      released_.push_back(id);
    }
}

void shard_rounds::next_stage(std::vector<issued_job>& issued, job_state state) {
  each_round(issued, [&](std::span<issued_job> jobs) {
    auto& round = rounds_.at(jobs.front().id.assignment);
    pending_ -= round.is_pending() ? 1 : 0;
    round.is_reported = true;
    round.parked = state == job_state::parked ? jobs.size() : 0;
    pending_ += round.is_pending() ? 1 : 0;
    round.jobs.clear();
    for (auto& job : jobs) {
      job.compute_duration = clients_.devices().compute_time(round.given.client, device_work_of(job));
      round.jobs.push_back({.issued = job, .state = state});
      if (state == job_state::released)
        released_.push_back(job.id);
    }
  });
}

void shard_rounds::end_wave() {
  for (const auto& id : std::exchange(released_, {}))
    if (const auto round = rounds_.find(id.assignment); round != rounds_.end() && round->second.stage() == id.stage)
      round->second.jobs.at(id.step).state = job_state::run;
}

void shard_rounds::set_fuse_key(assignment_id id, std::size_t step, const issued_job& job) {
  auto& kept = rounds_.at(id).jobs.at(step).issued;
  const auto compute_duration = kept.compute_duration;
  kept = job;
  kept.compute_duration = compute_duration;
}

void shard_rounds::recount_pending() {
  pending_ = static_cast<std::size_t>(
      std::count_if(rounds_.begin(), rounds_.end(), [](const auto& kept) { return kept.second.is_pending(); }));
}

} // namespace mneme
