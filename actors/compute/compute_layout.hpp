/// compute_layout: how many workers compute a run, and which of them host its shards.
#pragma once
#include "actors/compute/batch_queues.hpp"
#include "actors/protocol/run_context.hpp"
namespace mneme {

struct compute_layout {
  std::int64_t workers = 1; ///< Each with an executor and a thread.
  std::int64_t hosts = 1;   ///< Workers that clients' jobs keep busy: they host the shards; the others help out.
  std::int64_t shards = 1;
  std::int64_t batches_per_worker =
      1; ///< Batches of a wave, at least: more where the first are folded while others run.
  /// The first worker shares its thread with scheduler and server, so that one thread is one core. Where jobs are long
  /// it has its own, because uploads that others have computed would lie in memory while it computes.
  bool control_computes = false;
};

/// The one place that decides who computes. Where bits depend on the batch, on a GPU, nothing of the layout follows
/// from the number of threads.
/// @param run is loaded; its own layout is not read
[[nodiscard]] compute_layout layout_of(const run_context& run, std::int64_t threads);

/// The same of the workers of a run's nodes: what they compute is always folded elsewhere while they go on.
[[nodiscard]] compute_layout layout_of_nodes(const run_context& run, std::int64_t workers);

/// True where a worker's thread is its own, and not the one on which scheduler and server run.
[[nodiscard]] bool has_own_thread(const run_context& run, worker_id worker);

} // namespace mneme
