/// metrics_option: the options --metrics and --metrics-token.
#pragma once
#include "actors/protocol/process_state.hpp"
#include "runtime/base/diagnostic.hpp"
#include "tools/cli/command_line.hpp"
#include <functional>
#include <optional>
namespace mneme {

/// Starts the server of metrics and health, and prints its address on `log`.
using metrics_starter = std::function<expected<std::shared_ptr<const void>>(process_state state, std::FILE* log)>;

/// Checks the options. Returns null without --metrics. Fails if the address is not on the loopback and there is no
/// token.
/// @param local_rank added to a port above 0, because processes of one machine are started with the same options
[[nodiscard]] expected<metrics_starter> metrics_option(const metrics_arguments& arguments,
                                                       std::optional<std::int64_t> local_rank = {});

} // namespace mneme
