/// batch_planner: groups jobs into batches. All batches are planned here. A plan never depends on the order in which
/// jobs were reported.
#pragma once
#include "runtime/federation/wave.hpp"
#include <span>
namespace mneme {

/// A job that is parked at its shard.
struct parked_job {
  issued_job job{};
  virtual_time due{}; ///< Virtual time at which its result is needed.
  shard_id shard{};
};

/// Limits on batches.
struct batch_rules {
  std::int64_t workers = 1;
  /// Set to false on a device whose bits depend on the batch: batches must not depend on the number of workers there.
  bool balance_over_workers = true;
  bool width_is_fixed = false; ///< The scenario sets the width: no batch may be wider.
  /// Minimum number of batches per worker. More than 1 if results are used while other batches are computed.
  std::int64_t batches_per_worker = 1;
};

/// Batches of one shard, in the order in which they run.
struct shard_batches {
  shard_id shard{};
  std::vector<composition> batches{};
};

/// Plans batches of jobs that have the same shard and key. Jobs of similar length share a batch, so that fused groups
/// stay wide. If results are large or used early, jobs that are due first come first. Job ids ascend in a batch; shards
/// ascend.
/// @param shards_alike number of shards with similar jobs; more than one if only one shard's jobs are known here
[[nodiscard]] std::vector<shard_batches> plan_batches(std::span<const parked_job> jobs, const batch_rules& rules,
                                                      std::int64_t shards_alike = 1);

/// True if plan_batches() uses due times for jobs whose results hold `outcome_bytes` in total.
[[nodiscard]] bool reads_due(std::int64_t outcome_bytes, const batch_rules& rules);

/// Width that cuts `jobs` into batches of similar size: about `width`, and up to a quarter more if that saves a batch.
[[nodiscard]] std::int64_t even_width(std::int64_t jobs, std::int64_t width);

} // namespace mneme
