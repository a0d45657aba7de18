#include "runtime/federation/in_flight_table.hpp"
#include "runtime/population/population.hpp"
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
namespace mneme {

bool assignment_in_flight::matches_duration(std::uint32_t stage, virtual_duration duration) const noexcept {
  return stage == stages.size() || (stage < stages.size() && (stages[stage] == duration || horizon == end_of_runs));
}

virtual_time assignment_in_flight::set_duration(std::uint32_t stage, virtual_duration duration) {
  MNEME_CHECK(matches_duration(stage, duration), id.value, stage, duration.count());
  if (stage == stages.size()) {
    stages.push_back(std::min(duration, end_of_runs - horizon)); // no run reaches later times
    return horizon += stages.back();
  }
  return std::accumulate(stages.begin() + stage + 1, stages.end(), horizon, std::minus<>{});
}

virtual_time assignment_in_flight::planned_download_end() const noexcept {
  return std::accumulate(stages.begin(), stages.end(), horizon, std::minus<>{});
}

c10::SmallVector<virtual_time, 4> assignment_in_flight::stage_events() const {
  c10::SmallVector<virtual_time, 4> times;
  auto at = sent_at();
  for (auto stage = stages.size(); !is_uploading && stage + 1 > stages_reached; --stage) {
    times.push_back(at);
    if (stage == 0)
      break;
    at -= stages[stage - 1];
  }
  return times;
}

assignment_in_flight& in_flight_table::add(assignment_in_flight&& added) {
  const auto id = added.id;
  held_bytes_ += added.held_bytes;
  return assignments_.insert(id, std::move(added));
}

void in_flight_table::erase(assignment_id id) {
  held_bytes_ -= assignments_.at(id).held_bytes;
  assignments_.erase(id);
}

void in_flight_table::hold(assignment_in_flight& owner, std::int64_t bytes) {
  owner.held_bytes += bytes;
  held_bytes_ += bytes;
}

void in_flight_table::release_outcomes(assignment_in_flight& owner) {
  held_bytes_ -= std::exchange(owner.held_bytes, 0);
}

void in_flight_table::park(std::vector<parked_job> jobs) {
  if (parked_.empty())
    parked_ = std::move(jobs);
  else
    parked_.insert(parked_.end(), jobs.begin(), jobs.end());
}

void in_flight_table::forget_jobs(assignment_in_flight& owner) {
  std::erase_if(parked_, [&](const parked_job& parked) { return parked.job.id.assignment == owner.id; });
  release_outcomes(owner);
}

/// Sorts parked jobs by due time, but puts the jobs of `top` first, since virtual time waits for them.
void in_flight_table::sort_by_due(assignment_id top) {
  const auto rank = [&](const parked_job& parked) {
    return std::tuple{parked.job.id.assignment != top, parked.due, parked.job.id};
  };
  std::sort(parked_.begin(), parked_.end(),
            [&](const parked_job& a, const parked_job& b) { return rank(a) < rank(b); });
}

std::vector<parked_job> in_flight_table::take_runnable(assignment_id top, std::int64_t held_max,
                                                       const may_run& agrees) {
  std::erase_if(parked_, [&](const parked_job& parked) { return !assignments_.find(parked.job.id.assignment); });
  auto bytes = held_bytes_;
  for (const auto& parked : parked_)
    bytes += parked.job.bytes;
  if (bytes > held_max) // otherwise all results fit, in any order
    sort_by_due(top);

  std::vector<parked_job> taken, left;
  bool full = false;
  for (const auto& parked : parked_) {
    auto& owner = assignments_.at(parked.job.id.assignment);
    const bool needed = owner.id == top;
    full = full || (!needed && held_bytes_ + parked.job.bytes > held_max);
    if (!needed && (full || !agrees(owner, parked.due))) {
      left.push_back(parked);
      continue;
    }
    hold(owner, parked.job.bytes);
    taken.push_back(parked);
  }
  parked_ = std::move(left);
  return taken;
}

} // namespace mneme
