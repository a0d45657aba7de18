/// run_metrics: metrics and readiness of a run, from its live view.
#pragma once
#include "actors/protocol/process_state.hpp"
#include "runtime/results/live_view.hpp"
namespace mneme {

/// Adds rounds, clients, traffic, jobs and accuracy, and metrics of each node. Adds nothing before a run has started.
void add_run_metrics(metric_registry& to, const live_run& run);

/// Reason why the run does not compute yet; empty if it does.
[[nodiscard]] std::string pending_reason(const live_run& run);

/// Metrics of run, actors and process, and readiness of the run.
[[nodiscard]] process_state state_of_run(std::shared_ptr<const live_view> view);

} // namespace mneme
