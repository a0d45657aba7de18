/// node_actors: the workers of a node for one run.
#pragma once
#include "actors/compute/batch_queues.hpp"
#include "actors/nodes/node_gateway.hpp"
#include "actors/protocol/process_state.hpp"
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
namespace mneme {

/// Owns the actors. The destructor ends the workers and waits for running batches.
class node_actors {
public:
  /// @param context the node's context, with the layout of the run @param are_measured true: actors export metrics
  node_actors(const run_context_ref& context, node_gateway_hooks hooks, bool are_measured = false);
  ~node_actors();
  node_actors(const node_actors&) = delete;
  node_actors& operator=(const node_actors&) = delete;
  /// Handles a message of the run. Thread-safe.
  void take(archive::buffer message);
  /// Number of batches that wait for a worker. Thread-safe.
  [[nodiscard]] std::size_t queued_batches() const { return queues_->waiting().clients; }
  /// Metrics of the actor system. Thread-safe.
  [[nodiscard]] const metric_registry& metrics() const { return system_->metrics(); }

private:
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  std::shared_ptr<batch_queues> queues_;
  std::vector<worker_actor> workers_;
  node_gateway_actor uplink_;
};

} // namespace mneme
