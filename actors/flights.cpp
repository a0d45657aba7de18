#include "actors/flights.hpp"
#include <algorithm>
#include <tuple>
namespace mneme {

flight& flight_book::add(flight one) {
  const auto id = one.id;
  return flights_.emplace(id, std::move(one)).first->second;
}

flight* flight_book::find(assignment_id id) {
  const auto found = flights_.find(id);
  return found == flights_.end() ? nullptr : &found->second;
}

void flight_book::erase(assignment_id id) {
  const auto found = flights_.find(id);
  held_bytes_ -= found->second.held_bytes;
  flights_.erase(found);
}

std::vector<assignment_id> flight_book::ids() const {
  std::vector<assignment_id> all;
  all.reserve(flights_.size());
  for (const auto& [id, one] : flights_)
    all.push_back(id);
  std::sort(all.begin(), all.end());
  return all;
}

void flight_book::park(std::vector<parked_job> jobs) {
  std::move(jobs.begin(), jobs.end(), std::back_inserter(parked_));
}

std::map<shard_id, std::vector<composition>>
flight_book::release(assignment_id top, const release_rules& rules,
                     const std::function<bool(const flight&, virtual_time)>& may_run) {
  std::erase_if(parked_, [&](const parked_job& one) { return !flights_.contains(one.job.id.assignment); });
  // The flight that virtual time waits for comes first, whatever else is due at the same time.
  std::sort(parked_.begin(), parked_.end(), [&](const parked_job& a, const parked_job& b) {
    auto rank = [&](const parked_job& one) { return std::tuple{one.job.id.assignment != top, one.due, one.job.id}; };
    return rank(a) < rank(b);
  });

  std::map<std::pair<shard_id, fuse_key>, std::vector<issued_job>> groups;
  std::map<fuse_key, std::int64_t> rows;
  std::vector<parked_job> left;
  bool full = false;
  for (auto& one : parked_) {
    auto& owner = flights_.at(one.job.id.assignment);
    const bool needed = owner.id == top;
    full = full || (!needed && held_bytes_ + one.job.bytes > rules.ahead_bytes_max);
    if (!needed && (full || !may_run(owner, one.due))) {
      left.push_back(one);
      continue;
    }
    owner.held_bytes += one.job.bytes;
    held_bytes_ += one.job.bytes;
    groups[{one.shard, one.job.key}].push_back(one.job);
    rows[one.job.key] += one.job.rows;
  }
  parked_ = std::move(left);

  std::map<shard_id, std::vector<composition>> batches;
  for (auto& [where, jobs] : groups) {
    const auto share = (rows[where.second] + rules.workers - 1) / rules.workers;
    const auto width = jobs.front().width;
    auto pieces = cut(std::move(jobs), width, rules.balance_over_workers ? share : 0);
    std::move(pieces.begin(), pieces.end(), std::back_inserter(batches[where.first]));
  }
  return batches;
}

std::vector<composition> cut(std::vector<issued_job> jobs, std::int64_t width, std::int64_t rows_max) {
  std::sort(jobs.begin(), jobs.end(), [](const issued_job& a, const issued_job& b) {
    return std::tuple{-a.rows, a.id} < std::tuple{-b.rows, b.id};
  });
  std::vector<composition> batches;
  std::int64_t rows = 0;
  for (const auto& one : jobs) {
    const bool new_batch =
        batches.empty() || std::ssize(batches.back()) >= width || (rows_max > 0 && rows + one.rows > rows_max);
    if (new_batch) {
      batches.emplace_back();
      rows = 0;
    }
    batches.back().push_back(one.id);
    rows += one.rows;
  }
  for (auto& batch : batches)
    std::sort(batch.begin(), batch.end());
  return batches;
}

} // namespace mneme
