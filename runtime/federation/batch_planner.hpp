/// batch_planner: which jobs run together. Nothing else plans a batch, and what it plans never depends on the order in
/// which jobs were reported.
#pragma once
#include "runtime/federation/wave.hpp"
#include <span>
namespace mneme {

/// A job that waits at its shard.
struct parked_job {
  issued_job job{};
  virtual_time due{}; ///< When virtual time needs its outcome.
  shard_id shard{};
};

/// How jobs are cut into batches.
struct batch_rules {
  std::int64_t workers = 1;
  /// On a device whose bits depend on the batch, composition must not depend on the number of workers.
  bool balance_over_workers = true;
  bool width_is_fixed = false; ///< By the scenario: no batch may be wider.
  /// Batches that a worker's share of the rows makes at least: more where results are used while others are computed.
  std::int64_t batches_per_worker = 1;
};

/// The batches of one shard, in the order in which they run.
struct shard_batches {
  shard_id shard{};
  std::vector<composition> batches{};
};

/// Jobs of one shard and one key share batches: those of like length together, so that groups stay wide; where outcomes
/// are large or used meanwhile, the first ones that are due come first, too. Each batch ascends in id; shards ascend.
/// @param shards_alike how many shards hold jobs like these: more than one where only one shard's are known
[[nodiscard]] std::vector<shard_batches> plan_batches(std::span<const parked_job> jobs, const batch_rules& rules,
                                                      std::int64_t shards_alike = 1);

/// True if plan_batches() reads when jobs are due, of jobs whose outcomes hold so many bytes together.
[[nodiscard]] bool reads_due(std::int64_t outcome_bytes, const batch_rules& rules);

/// How many jobs a batch should have so that `jobs` make batches of like width: about `width`, and less than a
/// quarter more where that saves a batch.
[[nodiscard]] std::int64_t even_width(std::int64_t jobs, std::int64_t width);

} // namespace mneme
