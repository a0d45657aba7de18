#include "runtime/federation/batch_planner.hpp"
#include "runtime/base/ceil_div.hpp"
#include "runtime/base/tuning.hpp"
#include <algorithm>
#include <iterator>
#include <tuple>
namespace mneme {
namespace {

/// Sort key of a job within its group.
struct job_place {
  std::int64_t rows = 0; // negated, so that long jobs come first
  virtual_time due{};
  job_id id{};
  auto operator<=>(const job_place&) const = default;
};

/// Jobs of one shard with one fuse key; they may share batches.
struct job_group {
  shard_id shard{};
  fuse_key key{};
  std::int64_t width = 1, rows = 0, bytes = 0;
  std::vector<job_place> jobs{};
};

struct batch_limits {
  std::int64_t width = 1;    // jobs per batch
  std::int64_t rows_max = 0; // approximate limit of training rows per batch; 0: no limit
  // True: results are used while other batches run. Jobs with the earliest due time then come first, and the last
  // batches shrink to a quarter of the usual rows, so that all threads finish at the same time.
  bool tapered = false;
};

/// Finds or adds the job's group. A linear search is enough: there are few combinations of shard and key.
job_group& group_of(std::vector<job_group>& groups, const parked_job& parked) {
  for (auto& known : groups)
    if (known.shard == parked.shard && known.key == parked.job.key)
      return known;
  return groups.emplace_back(
      job_group{.shard = parked.shard, .key = parked.job.key, .width = parked.job.width, .jobs = {}});
}

std::vector<job_group> grouped(std::span<const parked_job> jobs) {
  std::vector<job_group> groups;
  for (const auto& parked : jobs) {
    auto& group = group_of(groups, parked);
    if (group.jobs.empty())
      group.jobs.reserve(jobs.size());
    group.rows += parked.job.rows;
    group.bytes += parked.job.bytes;
    group.jobs.push_back({.rows = -parked.job.rows, .due = parked.due, .id = parked.job.id});
  }
  std::sort(groups.begin(), groups.end(),
            [](const job_group& a, const job_group& b) { return std::tie(a.shard, a.key) < std::tie(b.shard, b.key); });
  return groups;
}

/// Computes the limits of a group's batches. @param rows total training rows of this key over all shards
batch_limits limits_of(const job_group& group, std::int64_t rows, const batch_rules& rules) {
  const auto parts = rules.workers * rules.batches_per_worker;
  const auto share = ceil_div<std::int64_t>(rows, parts);
  const bool is_exact = rules.width_is_fixed || !rules.balance_over_workers;
  return {.width = is_exact ? group.width : even_width(std::ssize(group.jobs), group.width),
          .rows_max = rules.balance_over_workers ? share : 0,
          .tapered = rules.batches_per_worker > 1};
}

void sort_group(job_group& group, bool by_due) {
  if (!by_due)
    for (auto& place : group.jobs)
      place.due = {};
  if (!std::is_sorted(group.jobs.begin(), group.jobs.end()))
    std::sort(group.jobs.begin(), group.jobs.end());
}

std::vector<composition> cut(job_group group, const batch_limits& limits, bool by_due) {
  sort_group(group, by_due);
  std::vector<composition> batches;
  std::int64_t sum = 0, left = group.rows, rows_max = 0;
  const auto rows_min = ceil_div<std::int64_t>(limits.rows_max, 4);
  for (const auto& place : group.jobs) {
    const bool is_rest = limits.tapered && 2 * left < rows_min; // the remaining rows are too few for a batch of their
                                                                // own
    const bool is_full = batches.empty() || std::ssize(batches.back()) >= limits.width ||
                         (rows_max > 0 && sum - place.rows > rows_max && !is_rest);
    if (is_full) {
      rows_max = limits.tapered ? std::clamp(left / 2, rows_min, limits.rows_max) : limits.rows_max;
      batches.emplace_back();
      sum = 0;
    }
    batches.back().push_back(place.id);
    sum -= place.rows;
    left += place.rows;
  }
  for (auto& batch : batches)
    if (!std::is_sorted(batch.begin(), batch.end()))
      std::sort(batch.begin(), batch.end());
  return batches;
}

} // namespace

std::vector<shard_batches> plan_batches(std::span<const parked_job> jobs, const batch_rules& rules,
                                        std::int64_t shards_alike) {
  auto groups = grouped(jobs);
  const auto rows_of_key = [&](const fuse_key& key) {
    std::int64_t rows = 0;
    for (const auto& group : groups)
      rows += group.key == key ? group.rows : 0;
    return rows * shards_alike;
  };
  std::vector<batch_limits> limits; // computed for all groups first, because a worker's share depends on all shards
  for (const auto& group : groups)
    limits.push_back(limits_of(group, rows_of_key(group.key), rules));

  std::vector<shard_batches> planned;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (planned.empty() || planned.back().shard != groups[i].shard)
      planned.push_back({.shard = groups[i].shard, .batches = {}});
    auto& batches = planned.back().batches;
    const bool by_due = reads_due(groups[i].bytes, rules);
    auto cut_now = cut(std::move(groups[i]), limits[i], by_due);
    std::move(cut_now.begin(), cut_now.end(), std::back_inserter(batches));
  }
  return planned;
}

bool reads_due(std::int64_t outcome_bytes, const batch_rules& rules) {
  return rules.batches_per_worker > 1 || outcome_bytes > tuning::cached_outcomes_bytes;
}

std::int64_t even_width(std::int64_t jobs, std::int64_t width) {
  const auto batches = std::max<std::int64_t>(1, (4 * jobs + 3 * width) / (4 * width)); // rounds up from x.25
  return ceil_div(jobs, batches);
}

} // namespace mneme
