/// weight_change_penalty: OSCAR-R's penalty on changes of the model, as in the official code.
#pragma once
#include "runtime/method/training.hpp"
namespace mneme {

/// Cross-entropy + weight * sum over the net's tensors of mean((w - start)^2). The mean is over one tensor, so changes
/// of large tensors hardly count (github.com/obaidullahzaland/OSI-FL, bf60f74, train_incremental_model_regularized).
/// Running statistics are excluded.
[[nodiscard]] loss_ref weight_change_penalty(const model& net, double weight);

} // namespace mneme
