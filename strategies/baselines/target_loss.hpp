/// target_loss: what TARGET's clients minimise in later tasks (Zhang et al. 2023, from its public code).
#pragma once
#include "strategies/shared/row_losses.hpp"
namespace mneme {

/// CE over the classes behind the `old_classes` first, of own rows, and of the last rows of a step, which are replayed,
///     weight KD,  KD = -sum_c softmax(z_old / T)_c log softmax(z / T)_c
/// over the old ones, not multiplied by T^2: each a mean over its own rows. Reads the teacher's logits of old classes.
[[nodiscard]] loss_ref target_objective(std::int64_t old_classes, double weight, double temperature);

} // namespace mneme
