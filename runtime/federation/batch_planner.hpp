/// batch_planner: plans which jobs run together in a batch. A plan never depends on the order in which jobs were
/// reported.
#pragma once
#include "runtime/federation/wave.hpp"
#include <span>
namespace mneme {

/// A job that is parked at its shard.
struct parked_job {
  issued_job job{};
  virtual_time due{}; ///< Virtual time at which the job's result is needed.
  shard_id shard{};
};

/// Rules that limit the size of batches.
struct batch_rules {
  std::int64_t workers = 1;
  /// False on devices where the composition of a batch changes the bits of its results. The number of workers then must
  /// not affect batches.
  bool balance_over_workers = true;
  bool width_is_fixed = false; ///< The scenario sets the width; no batch may be wider.
  /// Minimum number of batches per worker; above 1 if results are used while other batches run.
  std::int64_t batches_per_worker = 1;
};

/// Batches of one shard, in execution order.
struct shard_batches {
  shard_id shard{};
  std::vector<composition> batches{};
};

/// Plans batches of jobs with the same shard and key. Jobs of similar length share a batch, so that fused groups stay
/// wide. If results are large, or used while other batches run, jobs are sorted by due time instead. The plan lists
/// shards in ascending order, and the job ids of each batch in ascending order.
/// @param shards_alike number of shards with similar jobs; above 1 if `jobs` holds the jobs of one shard only
[[nodiscard]] std::vector<shard_batches> plan_batches(std::span<const parked_job> jobs, const batch_rules& rules,
                                                      std::int64_t shards_alike = 1);

/// True if plan_batches() uses due times for jobs with results of `outcome_bytes` in total.
[[nodiscard]] bool reads_due(std::int64_t outcome_bytes, const batch_rules& rules);

/// Width that splits `jobs` into batches of similar size. It may exceed `width` by a quarter if that saves a batch.
[[nodiscard]] std::int64_t even_width(std::int64_t jobs, std::int64_t width);

} // namespace mneme
