/// calibration: measures this machine's speed on a scenario's net as a device profile, for `mneme calibrate`.
#pragma once
#include "runtime/settings/device_profile.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

struct calibration {
  device_profile profile{};     ///< Rates, fixed costs and memory; not links.
  double train_row_s = 0.0;     ///< Forward, backward and optimizer, at the scenario's batch size.
  double forward_row_s = 0.0;   ///< Forward pass with fixed weights.
  double optimizer_row_s = 0.0; ///< Optimizer step, per row of a batch; 0 if a step of plain SGD is
                                ///< part of the backward pass.
  double backward_row_s = 0.0;  ///< The remaining time.
  double train_row_flops = 0.0; ///< As computed by work_of_pass.
  std::int64_t repeats = 0;     ///< Measurements of each job; the median is used.
  std::string device{};         ///< "cpu" (one core) or "cuda:0"
  diagnostics warnings{};
};

/// Trains the scenario's net on its rows for about `seconds`, without other clients, and fits time = fixed cost + rows
/// * time per row to jobs of several sizes. Returns all errors of the scenario on failure.
[[nodiscard]] expected<calibration> calibrate(const scenario& settings, double seconds);

} // namespace mneme
