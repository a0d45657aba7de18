/// best_epoch: records the weights after the epoch in which the net classified most rows correctly, as OSCAR's program
/// keeps them.
#pragma once
#include "runtime/method/training_observer.hpp"
namespace mneme {

/// [P]: the first of equal epochs, and the start if no row was classified correctly. Rows count before the step that
/// trains on them.
inline constexpr const char* best_epoch_weights = "best_epoch_weights";
[[nodiscard]] observation_ref best_epoch_observation();

} // namespace mneme
