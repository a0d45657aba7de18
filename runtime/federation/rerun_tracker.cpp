#include "runtime/federation/rerun_tracker.hpp"
#include "runtime/base/check.hpp"
namespace mneme {

void rerun_tracker::add(assignment_id id, std::uint32_t stages) { rounds_[id] = {.stages_before = stages}; }

std::vector<assignment_id> rerun_tracker::ids() const {
  std::vector<assignment_id> ids;
  for (const auto& [id, round] : rounds_)
    ids.push_back(id);
  return ids;
}

void rerun_tracker::waits_for(std::vector<parked_job> jobs) {
  MNEME_CHECK(!jobs.empty());
  const auto& first = jobs.front().job.id;
  auto& round = rounds_.at(first.assignment);
  round.stages = first.stage + 1;
  round.jobs = std::move(jobs);
}

void rerun_tracker::ended(assignment_id id) {
  auto& round = rounds_.at(id);
  round.has_ended = true;
  round.jobs.clear();
}

std::uint32_t rerun_tracker::stages_of(assignment_id id) const { return rounds_.at(id).stages; }

bool rerun_tracker::is_lagging(assignment_id id) const {
  const auto round = rounds_.find(id);
  return round != rounds_.end() && round->second.is_lagging();
}

bool rerun_tracker::has_ended(assignment_id id) const { return rounds_.at(id).has_ended; }

std::vector<parked_job> rerun_tracker::take_lagging() {
  std::vector<parked_job> lagging;
  for (auto& [id, round] : rounds_)
    if (round.is_lagging()) {
      lagging.insert(lagging.end(), round.jobs.begin(), round.jobs.end());
      round.jobs.clear();
    }
  return lagging;
}

} // namespace mneme
