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

release_rules rules_of(const world& run) {
  return {.ahead_bytes_max = run.what.worker.ahead_max.bytes,
          .workers = run.workers,
          .balance_over_workers = run.device == "cpu",
          .width_is_fixed = run.what.worker.models_max > 0,
          .batches_per_worker = run.shards_compute ? 8 : 1};
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

std::map<shard_id, std::vector<composition>>
flight_book::release(assignment_id top, const release_rules& rules,
                     const std::function<bool(const flight&, virtual_time)>& may_run) {
  auto groups = chosen(top, rules.ahead_bytes_max, may_run);
  std::map<fuse_key, std::int64_t> rows;
  for (const auto& one : groups)
    for (const auto& job : one.jobs)
      rows[one.key] += job.job.rows;
  std::map<shard_id, std::vector<composition>> batches;
  for (auto& one : groups) {
    auto pieces = cut(std::move(one.jobs), rows.at(one.key), rules);
    std::move(pieces.begin(), pieces.end(), std::back_inserter(batches[one.shard]));
  }
  return batches;
}

std::vector<flight_book::group> flight_book::chosen(assignment_id top, std::int64_t held_max,
                                                    const std::function<bool(const flight&, virtual_time)>& may_run) {
  std::erase_if(parked_, [&](const parked_job& one) { return !flights_.find(one.job.id.assignment); });
  auto bytes = held_bytes_;
  for (const auto& one : parked_)
    bytes += one.job.bytes;
  if (bytes > held_max) // else nobody is left behind, whatever the order
    sort_by_due(top);

  std::vector<group> groups; // few: shards times kinds of jobs
  auto group_of = [&](const parked_job& one) -> group& {
    for (auto& known : groups)
      if (known.shard == one.shard && known.key == one.job.key)
        return known;
    return groups.emplace_back(group{.shard = one.shard, .key = one.job.key, .jobs = {}});
  };
  std::vector<parked_job> left;
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
    group_of(one).jobs.push_back(one);
  }
  parked_ = std::move(left);
  std::sort(groups.begin(), groups.end(),
            [](const group& a, const group& b) { return std::tie(a.shard, a.key) < std::tie(b.shard, b.key); });
  return groups;
}

std::int64_t even_width(std::int64_t jobs, std::int64_t width) {
  const auto batches = std::max<std::int64_t>(1, (4 * jobs + 3 * width) / (4 * width)); // rounded down from 3/4 above
  return (jobs + batches - 1) / batches;
}

std::vector<composition> cut(std::vector<parked_job> jobs, std::int64_t rows, const release_rules& rules) {
  const auto parts = rules.workers * rules.batches_per_worker;
  const auto share = (rows + parts - 1) / parts;
  const auto wanted = jobs.front().job.width;
  const bool is_exact = rules.width_is_fixed || !rules.balance_over_workers;
  const auto width = is_exact ? wanted : even_width(std::ssize(jobs), wanted);
  const auto rows_max = rules.balance_over_workers ? share : 0;
  return cut(std::move(jobs), {.width = width, .rows_max = rows_max, .tapered = rules.batches_per_worker > 1});
}

std::vector<composition> cut(std::vector<parked_job> jobs, const batch_limits& limits) {
  constexpr std::int64_t cached_bytes = std::int64_t{16} << 20; // of outcomes that wait for nothing worse than a cache
  std::int64_t left = 0, bytes = 0;
  for (const auto& one : jobs) {
    left += one.job.rows;
    bytes += one.job.bytes;
  }
  const bool by_due = limits.tapered || bytes > cached_bytes;
  struct place {
    std::int64_t rows = 0; // negative: the longest come first
    virtual_time due{};
    job_id id{};
    auto operator<=>(const place&) const = default;
  };
  std::vector<place> order;
  order.reserve(jobs.size());
  for (const auto& one : jobs)
    order.push_back({.rows = -one.job.rows, .due = by_due ? one.due : virtual_time{}, .id = one.job.id});
  if (!std::is_sorted(order.begin(), order.end()))
    std::sort(order.begin(), order.end());
  std::vector<composition> batches;
  std::int64_t sum = 0, rows_max = 0;
  for (const auto& one : order) {
    const bool new_batch =
        batches.empty() || std::ssize(batches.back()) >= limits.width || (rows_max > 0 && sum - one.rows > rows_max);
    if (new_batch) {
      rows_max = limits.tapered ? std::clamp(left / 2, (limits.rows_max + 3) / 4, limits.rows_max) : limits.rows_max;
      batches.emplace_back();
      sum = 0;
    }
    batches.back().push_back(one.id);
    sum -= one.rows;
    left += one.rows;
  }
  for (auto& batch : batches)
    if (!std::is_sorted(batch.begin(), batch.end()))
      std::sort(batch.begin(), batch.end());
  return batches;
}

} // namespace mneme
