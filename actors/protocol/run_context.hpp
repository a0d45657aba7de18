/// run_context: what all actors of a run read and none changes.
#pragma once
#include "actors/protocol/result_gate.hpp"
#include "runtime/data/row_store.hpp"
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
  std::shared_ptr<const strategy> method{};
  method_needs needs{}; ///< Those of the method.
  model_ref net{};
  std::shared_ptr<feature_store> features{};    ///< Shared by all workers, and by itself only.
  std::shared_ptr<slice_store> slices{};        ///< The same; null: a resumed run begins long programs again.
  const std::atomic<int>* interrupts = nullptr; ///< Above 0: the run is to end; null: nobody interrupts it.
  std::shared_ptr<row_store> made_rows = std::make_shared<row_store>(); ///< Shared by server, clients and workers.
  std::string device{};                                                 ///< "cpu" or "cuda:N"
  /// Nanoseconds that workers have computed, for the report only. A message for each batch would cost more than it.
  std::shared_ptr<std::atomic<std::int64_t>> busy_ns = std::make_shared<std::atomic<std::int64_t>>(0);
  /// Who computes, as actors/compute/compute_layout.hpp has it.
  std::int64_t shards = 1, workers = 1, hosts = 1, batches_per_worker = 1;
  bool control_computes = false;
  std::int64_t node_workers = 0; ///< Workers of all nodes, among whom clients' batches are shared out; 0: no nodes.
  std::shared_ptr<result_gate> gate{}; ///< On a node. Null: results do not wait for a network.
  bool trace = false;
  std::int64_t values_round = 0; ///< The round whose uploads, and the model after it, are kept; 0: none.
  byte_size stored_results_max{};
  std::int64_t events_max = 0; ///< Events after which a process interrupts its run by itself; 0: never.
};
using run_context_ref = std::shared_ptr<const run_context>;

} // namespace mneme
