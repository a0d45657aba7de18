/// prometheus_text: measurements in Prometheus' text format (version 0.0.4), for runs and nodes.
#pragma once
#include "runtime/results/live_view.hpp"
#include "runtime/results/measurement.hpp"
namespace mneme {

/// Names and help are the caller's and taken as they are; values of labels may hold anything.
[[nodiscard]] std::string prometheus_text(const std::vector<measurement>& measurements);

/// What a run tells of itself: rounds, clients, traffic, jobs, accuracy. Empty before a run has begun.
[[nodiscard]] std::vector<measurement> measurements_of(const live_run& run);

} // namespace mneme
