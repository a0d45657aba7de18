/// compute_layout: how many workers compute a run, and which of them host its shards.
#pragma once
#include "actors/compute/batch_queues.hpp"
#include "actors/protocol/world.hpp"
namespace mneme {

struct compute_layout {
  std::int64_t workers = 1; ///< Each with an executor and a thread.
  std::int64_t hosts = 1;   ///< Workers that clients' jobs keep busy: they host the shards; the others help out.
  std::int64_t shards = 1;
  std::int64_t batches_per_worker = 1; ///< Of a wave, at least: more where the first are folded while others run.
};

/// The one place that decides who computes. Where bits depend on the batch, on a GPU, nothing of the layout follows
/// from the number of threads.
/// @param run is loaded; its own layout is not read
[[nodiscard]] compute_layout layout_of(const world& run, std::int64_t threads);

/// Whether a worker's thread is its own. The first worker of a CPU shares the thread on which control runs, so that one
/// thread is one core.
[[nodiscard]] bool has_own_thread(const world& run, worker_id which);

} // namespace mneme
