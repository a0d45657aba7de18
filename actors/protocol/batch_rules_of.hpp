/// batch_rules_of: rules for cutting a run's jobs into batches.
#pragma once
#include "actors/protocol/run_context.hpp"
#include "runtime/federation/batch_planner.hpp"
namespace mneme {

[[nodiscard]] inline batch_rules batch_rules_of(const run_context& run) {
  return {.workers = run.node_workers > 0 ? run.node_workers : run.hosts,
          .balance_over_workers = run.device == "cpu",
          .width_is_fixed = run.scenario.worker.fused_clients_max > 0,
          .batches_per_worker = run.batches_per_worker};
}

} // namespace mneme
