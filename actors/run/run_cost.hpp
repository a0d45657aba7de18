/// run_cost: estimates computation, traffic, memory and time of a run in advance, for `mneme validate --cost`.
#pragma once
#include "actors/run/dry_run.hpp"
#include "actors/run/memory_estimate.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

struct raw_data;

struct run_cost {
  dry_run_result played{};
  double train_flops = 0.0;    ///< FLOPs of clients' jobs: matrix products and convolutions, two per multiply-add,
                               ///< without padding and element-wise operations.
  double evaluate_flops = 0.0; ///< FLOPs of evaluations, counted in the same way.
  std::vector<memory_part> memory{};
  memory_budget room{};
  double flops_per_second = 0.0; ///< Rate of one worker, measured on this machine for the net's products.
  std::int64_t workers = 1;      ///< Number of workers with work.
  double seconds = 0.0;          ///< Wall-clock time: all FLOPs at that rate, plus a constant per client round.
  diagnostics warnings{};        ///< Valid settings that are probably mistakes.

  [[nodiscard]] double memory_bytes() const;
};

/// Loads the scenario and estimates its cost with a dry run. Fails with all errors of the scenario.
/// @param threads as in run_options
[[nodiscard]] expected<run_cost> estimate_cost(const scenario& settings, std::int64_t threads = 0);

} // namespace mneme
