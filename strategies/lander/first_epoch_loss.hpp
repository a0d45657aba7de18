/// first_epoch_loss: records the losses of the first epoch, which starts from the received model.
#pragma once
#include "runtime/method/training_observer.hpp"
namespace mneme {

inline constexpr const char* first_epoch_loss = "first_epoch_loss"; ///< [] float64: sum of losses over the steps of the
                                                                    ///< first epoch
[[nodiscard]] observation_ref first_epoch_observation();

} // namespace mneme
