/// weight_change_penalty: OSCAR-R's penalty on changes of the model, as its released program computes it.
#pragma once
#include "runtime/method/training.hpp"
namespace mneme {

/// Cross-entropy + weight * sum over the net's tensors of mean((w - start)^2), where the mean is one over the tensor's
/// own numbers: a change of a large tensor counts for almost nothing (github.com/obaidullahzaland/OSI-FL, bf60f74,
/// train_incremental_model_regularized). Running statistics have no part in it.
[[nodiscard]] loss_ref weight_change_penalty(const model& net, double weight);

} // namespace mneme
