/// local_steps: how many steps a client's local training takes.
#pragma once
#include "runtime/method/training.hpp"
#include "runtime/training/step_plan.hpp"
namespace mneme {

/// epochs * ceil(rows / batch), or floor where short batches are dropped; where the batch is full, the epochs. 0
/// without rows.
[[nodiscard]] inline std::int64_t local_steps(const training_options& options, std::int64_t rows) {
  const step_plan epoch{.rows = rows, .batch_rows = options.batch_rows, .drop_last = drops_short_step(options)};
  return options.epochs * epoch.steps();
}

} // namespace mneme
