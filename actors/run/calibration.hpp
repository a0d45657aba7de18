/// calibration: how long this machine takes for rows of a scenario's net, as a device profile. For `mneme calibrate`.
#pragma once
#include "runtime/settings/device_profile.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

struct calibration {
  device_profile profile{};     ///< Rates, fixed costs and memory; links are measured elsewhere.
  double train_row_s = 0.0;     ///< Forward, backward and optimizer, at the scenario's batch.
  double forward_row_s = 0.0;   ///< A pass under fixed weights.
  double optimizer_row_s = 0.0; ///< A step of the optimizer over the rows of a batch; 0 where a step of plain SGD is
                                ///< part of the backward pass.
  double backward_row_s = 0.0;  ///< What is left.
  double train_row_flops = 0.0; ///< By work_of_pass.
  std::int64_t repeats = 0;     ///< Each job was measured so often; the median counts.
  std::string device{};         ///< "cpu" (one core) or "cuda:0"
  diagnostics warnings{};
};

/// Trains the scenario's net on its own rows, by itself, for about so long, and fits time = fixed cost + rows * time of
/// a row to jobs of several sizes. Fails with all that is wrong with the scenario.
[[nodiscard]] expected<calibration> calibrate(const scenario& settings, double seconds);

} // namespace mneme
