/// calibration: measures this machine's speed on a scenario's net as a device profile, for `mneme calibrate`.
#pragma once
#include "runtime/settings/device_profile.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

struct calibration {
  device_profile profile{};     ///< Rates, fixed cost per job and memory; it has no links.
  double train_row_s = 0.0;     ///< Forward, backward and optimizer, with the scenario's batch size.
  double forward_row_s = 0.0;   ///< Forward pass with fixed weights.
  double optimizer_row_s = 0.0; ///< Optimizer step, per row of a batch; 0 for plain SGD, which steps within the
                                ///< backward pass.
  double backward_row_s = 0.0;  ///< train_row_s minus forward_row_s and optimizer_row_s.
  double train_row_flops = 0.0; ///< FLOPs of one row, by work_of_pass().
  std::int64_t repeats = 0;     ///< Smallest number of measurements of a job; the median is used.
  std::string device{};         ///< "cpu" (one core) or "cuda:0"
  diagnostics warnings{};
};

/// Trains the scenario's net on its rows for about `seconds`, as a single client, and fits
/// time = fixed cost + rows * time per row to jobs of several sizes. Fails with all errors of the scenario.
[[nodiscard]] expected<calibration> calibrate(const scenario& settings, double seconds);

} // namespace mneme
