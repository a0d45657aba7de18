/// prometheus_text: formats measurements in Prometheus' text format (version 0.0.4).
#pragma once
#include "runtime/results/live_view.hpp"
#include "runtime/results/measurement.hpp"
namespace mneme {

/// Formats measurements. Label values are escaped; names and help texts are not.
[[nodiscard]] std::string prometheus_text(const std::vector<measurement>& measurements);

/// Metrics of a run: rounds, clients, traffic, jobs, accuracy. Empty until the run has started.
[[nodiscard]] std::vector<measurement> measurements_of(const live_run& run);

} // namespace mneme
