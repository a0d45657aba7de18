/// cluster_options: the place of this process in a cluster, from the options and variables with which it was started.
#pragma once
#include "actors/run/accept_nodes.hpp"
#include "actors/run/node_service.hpp"
#include "tools/cli/command_line.hpp"
namespace mneme {

/// The process runs scenarios, with the nodes that it accepts, or it computes for rank 0.
struct cluster_plan {
  accept_options accept{};
  std::optional<node_settings> node{}; ///< Set in ranks above 0.
  std::int64_t threads = 0;            ///< 0: one per core.
};
/// @param threads value of --threads; 0: not given
[[nodiscard]] expected<cluster_plan> plan_cluster(const cluster_arguments& arguments, std::int64_t threads);

/// The secret of a file, or of the environment, or the files of certificates.
[[nodiscard]] expected<credentials> trust_option(const trust_arguments& arguments);

/// Joins the run and returns the exit code. @param log receives lines
int run_node(node_settings settings, std::FILE* log);

} // namespace mneme
