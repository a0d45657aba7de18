/// accept_nodes: how a run accepts nodes, from its options to its summary.
#pragma once
#include "actors/nodes/node_pool.hpp"
#include "actors/nodes/node_records.hpp"
#include "actors/protocol/run_context.hpp"
namespace mneme {

/// Options of a run that accepts nodes.
struct accept_options {
  std::optional<node_address> address{}; ///< Nullopt: the run accepts none.
  credentials trust{};                   ///< Needed off the loopback.
  std::int64_t nodes_min = 0;            ///< Number of nodes for which the run waits before it begins;
  std::int64_t workers_min = 0;          ///< likewise, number of their workers.
  bool computes = false;                 ///< The run's own process shares the work with nodes.
  bool nodes_stay = false;               ///< Nodes wait for another run when this one is over.
  /// Receives the address with the port that is listened on, before anything is loaded; may be null.
  std::function<void(const node_address&)> listening{};
  std::function<void(const std::string&)> log{}; ///< Lines before the run begins; may be null.
};

/// Starts to accept nodes, which load the scenario while the run loads.
[[nodiscard]] expected<std::shared_ptr<node_pool>> accept_nodes(const scenario& settings,
                                                                const accept_options& options);
/// Waits for the nodes that the options name. Returns all errors.
[[nodiscard]] expected<void> await_nodes(node_pool& nodes, const run_context& context, const accept_options& options,
                                         const std::atomic<int>* interrupts);
/// Lays out a run that accepts nodes: on a CPU at least as many shards as nodes have workers, and some for nodes that
/// join later. @pre await_nodes() has succeeded
void spread_over_nodes(run_context& context, node_pool& nodes, const accept_options& options);
/// Records for the summary.
[[nodiscard]] std::vector<node_record> records_of(node_pool& nodes, const node_records& records);
/// Limits that follow from the longest accepted silence of a peer.
[[nodiscard]] connection_limits limits_of(virtual_duration silence);

} // namespace mneme
