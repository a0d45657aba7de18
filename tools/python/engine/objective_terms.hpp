/// native_losses: objectives that methods in Python name, and sums of them, computed for all clients of a batch at
/// once.
#pragma once
#include "runtime/method/training.hpp"
namespace mneme {

/// Cross-entropy, to the gradient of which every step adds the job's side "correction" [P] (Karimireddy et al. 2020,
/// SCAFFOLD, eq. 3).
[[nodiscard]] loss_ref corrected_objective();

/// weight * KD over the classes that the job's teacher shows (Li and Hoiem 2018, "Learning without Forgetting", eqs. 2
/// and 3), which are the first ones of the loss,
///     KD = -sum_c softmax(z_teacher / T)_c log softmax(z / T)_c, not multiplied by T^2.
/// Throws std::invalid_argument unless weight >= 0 and temperature > 0.
[[nodiscard]] loss_ref distilling_objective(double weight, double temperature);

/// The sum of two objectives: of their values, gradients and penalties.
[[nodiscard]] loss_ref added_losses(const loss_ref& first, const loss_ref& second);

/// True if the objective, or a part of it, compares the net with the job's teacher.
[[nodiscard]] bool reads_teacher(const loss& objective);

} // namespace mneme
