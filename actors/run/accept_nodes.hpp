/// accept_nodes: accepts, awaits and lays out the nodes of a run, and records them for its summary.
#pragma once
#include "actors/nodes/node_pool.hpp"
#include "actors/nodes/node_records.hpp"
#include "actors/protocol/run_context.hpp"
namespace mneme {

/// Options of a run that accepts nodes.
struct accept_options {
  std::optional<node_address> address{}; ///< Address to listen on; nullopt: the run accepts no nodes.
  credentials trust{};                   ///< Required for addresses other than loopback.
  std::int64_t nodes_min = 0;            ///< Number of nodes that must be ready before the run begins.
  std::int64_t ranks = 0;                ///< Number of nodes that a launcher starts; they end with the run.
  std::int64_t workers_min = 0;          ///< Number of workers of nodes that must be ready before the run begins.
  bool computes = false;                 ///< true: the run's own process shares the work with nodes.
  bool nodes_stay = false;               ///< true: nodes wait for another run when this one is over; false: they end.
  /// Receives the listening address with its port, before anything is loaded; may be null.
  std::function<void(const node_address&)> listening{};
  std::function<void(const std::string&)> log{}; ///< Receives log lines before the run begins; may be null.
};

/// Starts to accept nodes, which wait for a scenario. Returns null without an address. Fails for invalid credentials,
/// and if it cannot listen.
/// @param silence longest accepted silence of a node
/// @param interrupts above 0: await_nodes() fails, and the nodes end, even if options.nodes_stay is set
[[nodiscard]] expected<std::shared_ptr<node_pool>> accept_nodes(const accept_options& options, virtual_duration silence,
                                                                const std::atomic<int>* interrupts);
/// Sends the scenario to nodes, which load it while the run loads. Fails if they cannot get the data.
[[nodiscard]] expected<void> offer_scenario(node_pool& nodes, const scenario& settings);
/// Outcome for nodes of a run that cannot start.
[[nodiscard]] run_end end_for(const diagnostics& errors);
/// Ends the ranks of a launcher when no run begins: listens for at most 30 s and sends them the outcome. No effect if
/// no ranks are expected, or if the address is in use.
void end_ranks(const accept_options& options, const run_end& outcome);
/// Waits until the minimum of the options is ready. Fails at the timeout, with the reasons of rejected nodes.
[[nodiscard]] tl::expected<void, node_shortage> await_nodes(node_pool& nodes, const run_context& context,
                                                            const accept_options& options);
/// Lays out a run that accepts nodes. On a CPU it has at least as many shards as nodes have workers, and spare shards
/// for nodes that join later. @pre await_nodes() has succeeded
void lay_out_for_nodes(run_context& context, node_pool& nodes, const accept_options& options);
/// Returns one record per node, for the summary.
[[nodiscard]] std::vector<node_record> records_of(node_pool& nodes, const node_records& records);
/// Derives connection limits from the longest accepted silence of a peer, which is at least 100 ms.
[[nodiscard]] connection_limits limits_of(virtual_duration silence);

} // namespace mneme
