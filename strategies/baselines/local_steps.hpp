/// local_steps: number of steps of a client's local training.
#pragma once
#include "runtime/method/training.hpp"
#include "runtime/training/step_plan.hpp"
namespace mneme {

/// Returns epochs * ceil(rows / batch), or epochs * floor(rows / batch) if short batches are dropped. A full batch
/// takes one step per epoch. Returns 0 without rows.
[[nodiscard]] inline std::int64_t local_steps(const training_options& options, std::int64_t rows) {
  const step_plan epoch{.rows = rows, .batch_rows = options.batch_rows, .drop_last = drops_short_step(options)};
  return options.epochs * epoch.steps();
}

} // namespace mneme
