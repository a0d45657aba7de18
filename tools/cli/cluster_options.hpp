/// cluster_options: role of this process in a cluster, from its options and the launcher's variables.
#pragma once
#include "actors/run/run_nodes.hpp"
#include "tools/cli/command_line.hpp"
#include "tools/cli/metrics_option.hpp"
namespace mneme {

/// Role of the process: it runs scenarios and may accept nodes, or it is a node that computes for rank 0.
struct cluster_plan {
  accept_options accept{};
  std::optional<node_settings> node{}; ///< Set if the rank is above 0.
  std::int64_t threads = 0;            ///< 0: one per core.
};
/// Determines the role. Fails for options or launcher variables that contradict each other.
/// @param threads value of --threads; 0: not given
[[nodiscard]] expected<cluster_plan> plan_cluster(const cluster_arguments& arguments, std::int64_t threads);

/// Reads the secret from its file or the environment, or the paths of certificates. Fails for incomplete options.
[[nodiscard]] expected<credentials> trust_option(const trust_arguments& arguments);

/// Joins the run and returns the exit code. @param metrics null: no metrics are served @param log stream for log lines
int run_node(node_settings settings, const metrics_starter& metrics, std::FILE* log);

} // namespace mneme
