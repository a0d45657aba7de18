#include "actors/scheduler/flights.hpp"
#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>
namespace mneme {

virtual_time flight::learn(std::uint32_t stage, virtual_duration takes) {
  stages_run = stage + 1;
  if (stage == stages.size()) {
    stages.push_back(takes);
    return horizon += takes;
  }
  MNEME_CHECK(stage < stages.size() && stages[stage] == takes, id.value, stage, takes.count());
  return std::accumulate(stages.begin() + stage + 1, stages.end(), horizon, std::minus<>{});
}

void flight_book::hold(flight& owner, std::int64_t bytes) {
  owner.held_bytes += bytes;
  held_bytes_ += bytes;
}

void flight_book::release_outcomes(flight& of) { held_bytes_ -= std::exchange(of.held_bytes, 0); }

flight& flight_book::add(flight one) {
  const auto id = one.id;
  held_bytes_ += one.held_bytes;
  return flights_.insert(id, std::move(one));
}

void flight_book::erase(assignment_id id) {
  held_bytes_ -= flights_.at(id).held_bytes;
  flights_.erase(id);
}

void flight_book::park(std::vector<parked_job> jobs) {
  if (parked_.empty())
    parked_ = std::move(jobs);
  else
    parked_.insert(parked_.end(), jobs.begin(), jobs.end());
}

/// The flight that virtual time waits for comes first, whatever else is due at the same time.
void flight_book::sort_by_due(assignment_id top) {
  std::sort(parked_.begin(), parked_.end(), [&](const parked_job& a, const parked_job& b) {
    auto rank = [&](const parked_job& one) { return std::tuple{one.job.id.assignment != top, one.due, one.job.id}; };
    return rank(a) < rank(b);
  });
}

std::vector<parked_job> flight_book::release(assignment_id top, std::int64_t held_max,
                                             const std::function<bool(const flight&, virtual_time)>& may_run) {
  std::erase_if(parked_, [&](const parked_job& one) { return !flights_.find(one.job.id.assignment); });
  auto bytes = held_bytes_;
  for (const auto& one : parked_)
    bytes += one.job.bytes;
  if (bytes > held_max) // else nobody is left behind, whatever the order
    sort_by_due(top);

  std::vector<parked_job> released, left;
  bool full = false;
  for (const auto& one : parked_) {
    auto& owner = flights_.at(one.job.id.assignment);
    const bool needed = owner.id == top;
    full = full || (!needed && held_bytes_ + one.job.bytes > held_max);
    if (!needed && (full || !may_run(owner, one.due))) {
      left.push_back(one);
      continue;
    }
    hold(owner, one.job.bytes);
    released.push_back(one);
  }
  parked_ = std::move(left);
  return released;
}

} // namespace mneme
