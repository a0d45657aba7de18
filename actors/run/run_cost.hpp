/// run_cost: estimates computation, traffic, memory and time of a run in advance, for `mneme validate --cost`.
#pragma once
#include "actors/run/memory_estimate.hpp"
#include "actors/run/played_run.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

struct raw_data;

struct run_cost {
  played_run played{};
  double train_flops = 0.0;    ///< Client jobs: products and convolutions, two per multiply-add; without
                               ///< padding and element-wise operations.
  double evaluate_flops = 0.0; ///< Evaluations, counted likewise.
  std::vector<memory_part> memory{};
  memory_room room{};
  double flops_per_second = 0.0; ///< Of one worker, for products of the net's sizes; measured here.
  std::int64_t workers = 1;      ///< Number of workers that have work.
  double seconds = 0.0;          ///< All FLOPs at that rate, plus a constant per client round.
  diagnostics warnings{};        ///< Legal settings that are probably mistakes.

  [[nodiscard]] double memory_bytes() const;
};

/// Loads the scenario and plays its virtual time. Returns all errors of the scenario on failure.
/// @param threads as in run_options
[[nodiscard]] expected<run_cost> cost_of(const scenario& settings, std::int64_t threads = 0);

} // namespace mneme
