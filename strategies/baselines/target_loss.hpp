/// target_loss: the loss of TARGET's clients from task 2 on (Zhang et al., ICCV 2023, and its official code).
#pragma once
#include "strategies/shared/row_losses.hpp"
namespace mneme {

/// CE over the classes from `old_classes` on, as a mean over real rows, plus the mean over replayed rows of
///     weight KD,  KD = -sum_c softmax(z_old / T)_c log softmax(z / T)_c  over the old classes,
/// without a factor T^2. Reads the teacher's logits of the old classes. The last rows of a step are the replayed ones.
[[nodiscard]] loss_ref target_objective(std::int64_t old_classes, double weight, double temperature);

} // namespace mneme
