/// serving: implements the options --serve and --metrics of commands that run scenarios.
#pragma once
#include "runtime/results/live_view.hpp"
#include "tools/cli/metrics_option.hpp"
namespace mneme {

/// Live view and the servers of the two options; all are null without them. The destructor stops the servers.
struct serving {
  std::shared_ptr<live_view> view{};
  std::shared_ptr<const void> report{}, metrics{};
};

/// Starts the servers and prints their addresses on stderr. Fails if a port is invalid or in use.
/// @param port "" for no live report @param metrics null: no metrics
[[nodiscard]] expected<serving> serving_option(const std::string& port, const std::string& token,
                                               const metrics_starter& metrics);

} // namespace mneme
