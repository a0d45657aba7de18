/// compute_layout: number of workers of a run, and which of them host shards.
#pragma once
#include "actors/compute/batch_queues.hpp"
#include "actors/protocol/run_context.hpp"
namespace mneme {

struct compute_layout {
  std::int64_t workers = 1; ///< Each has one executor and one thread.
  std::int64_t hosts = 1;   ///< Workers that host shards; the others only run batches.
  std::int64_t shards = 1;
  std::int64_t batches_per_worker = 1; ///< Minimum per wave. Above 1, early results are folded while other batches run.
  /// True: worker 0 shares its thread with scheduler and server, so that one thread uses one core. False if jobs are
  /// long, because results of other workers would wait in memory while worker 0 computes.
  bool control_computes = false;
};

/// Chooses the layout for `threads` threads. If results depend on the batch, as on a GPU, the layout does not depend on
/// the number of threads. @param run loaded run; its own layout is not read
[[nodiscard]] compute_layout layout_of(const run_context& run, std::int64_t threads);

/// Layout for a run whose nodes have `workers` workers; their results are always folded in another process.
[[nodiscard]] compute_layout layout_of_nodes(const run_context& run, std::int64_t workers);

/// True if the worker does not share its thread with scheduler and server.
[[nodiscard]] bool has_own_thread(const run_context& run, worker_id worker);

} // namespace mneme
