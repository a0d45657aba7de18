/// run_context: constant inputs of a run, shared by all actors.
#pragma once
#include "actors/protocol/backpressure_gate.hpp"
#include "runtime/data/generated_row_store.hpp"
#include "runtime/data/held_out_partition.hpp"
#include "runtime/population/client_rows.hpp"
#include "runtime/training/feature_store.hpp"
#include "runtime/training/slice_store.hpp"
#include <atomic>
namespace mneme {

struct run_context {
  mneme::scenario scenario{};
  std::shared_ptr<const task_stream> tasks{};
  std::shared_ptr<const mneme::population> population{};
  std::shared_ptr<const client_rows> rows{};
  std::shared_ptr<const held_out_partition> held_out{}; ///< Null unless clients keep training rows for tests.
  std::shared_ptr<const strategy> method{};
  method_needs needs{}; ///< Requirements of the method.
  model_ref net{};
  std::shared_ptr<feature_store> features{};    ///< Shared by all workers; thread-safe.
  std::shared_ptr<slice_store> slices{};        ///< Shared and thread-safe. Null: slices are not saved, so a resumed
                                                ///< run restarts long programs.
  const std::atomic<int>* interrupts = nullptr; ///< Above 0: end the run. Null: it cannot be interrupted.
  std::shared_ptr<generated_row_store> generated_rows =
      std::make_shared<generated_row_store>(); ///< Shared by server, clients and workers.
  std::string device{};                        ///< "cpu" or "cuda:N"
  /// Computing time of all workers in nanoseconds, for the report only. All workers share this counter, because a
  /// message per batch would cost more.
  std::shared_ptr<std::atomic<std::int64_t>> busy_ns = std::make_shared<std::atomic<std::int64_t>>(0);
  /// Layout of the computation; see actors/compute/compute_layout.hpp.
  std::int64_t shards = 1, workers = 1, hosts = 1, batches_per_worker = 1;
  bool control_computes = false;
  std::int64_t node_workers = 0;             ///< Expected workers of all nodes; 0: the run accepts no nodes.
  std::int64_t local_workers = 0;            ///< Workers of the run's process that share the work of nodes.
  std::shared_ptr<backpressure_gate> gate{}; ///< Set on a node only. Null: no backpressure.
  bool trace = false;
  std::int64_t dumped_round = 0; ///< Number, from 1, of the round whose uploads and model are dumped; 0: none.
  byte_size stored_results_max{};
  std::int64_t events_max = 0; ///< The run interrupts itself after this number of events; 0: no limit.
};
using run_context_ref = std::shared_ptr<const run_context>;

} // namespace mneme
