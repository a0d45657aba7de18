/// run_nodes: the nodes of a run, from the command line to its summary.
#pragma once
#include "actors/nodes/node_pool.hpp"
#include "actors/nodes/node_records.hpp"
#include "actors/protocol/run_context.hpp"
namespace mneme {

/// Nodes that are connected and load the scenario; what is wrong with any of them.
[[nodiscard]] expected<std::shared_ptr<node_pool>>
greeted_nodes(const scenario& settings, const std::vector<node_address>& addresses, const tls_files& tls);
/// The layout of a run whose clients are computed by nodes: on a CPU at least as many shards as nodes have workers.
/// @param may_grow nodes may be named later, and shards are made for them
void spread_over_nodes(run_context& context, node_pool& nodes, bool may_grow);
/// For the summary.
[[nodiscard]] std::vector<node_record> records_of(node_pool& nodes, const node_records& records);
/// How long a peer may be silent, and the rest that follows from it.
[[nodiscard]] connection_limits limits_of(virtual_duration silence);

} // namespace mneme
