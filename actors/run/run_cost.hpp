/// run_cost: what a run would compute, send, hold and take, before it runs. For `mneme validate --cost`.
#pragma once
#include "actors/run/memory_estimate.hpp"
#include "actors/run/played_run.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

struct raw_data;

struct run_cost {
  played_run played{};
  double train_flops = 0.0;    ///< Clients' jobs: products and convolutions, two for each multiplication with its
                               ///< addition; neither padding nor what works element by element.
  double evaluate_flops = 0.0; ///< The same of evaluations.
  std::vector<memory_part> memory{};
  memory_room room{};
  double flops_per_second = 0.0; ///< One worker's, in products of the sizes that the net has; measured here.
  std::int64_t workers = 1;      ///< That have something to do.
  double seconds = 0.0;          ///< All FLOPs at that rate, and a constant for each client-round.
  diagnostics warnings{};        ///< What is well and can hardly be meant.

  [[nodiscard]] double memory_bytes() const;
};

/// Loads the scenario and plays it. Fails with all that is wrong with it.
/// @param threads as of run_options
[[nodiscard]] expected<run_cost> cost_of(const scenario& settings, std::int64_t threads = 0);

} // namespace mneme
