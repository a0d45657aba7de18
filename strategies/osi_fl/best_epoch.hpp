/// best_epoch: records the weights after the epoch with the most correctly classified training rows, as the official
/// OSCAR program does.
#pragma once
#include "runtime/method/training_observer.hpp"
namespace mneme {

/// Name of the recorded weights [P]. Of several equally good epochs, the first counts. If no row is ever classified
/// correctly, the start weights are recorded. A row is classified by its logits before the step that trains on it.
inline constexpr const char* best_epoch_weights = "best_epoch_weights";
[[nodiscard]] observation_ref best_epoch_observation();

} // namespace mneme
