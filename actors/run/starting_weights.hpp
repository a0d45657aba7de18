/// starting_weights: initial weights of a run's nets, drawn or read from files.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/models/model.hpp"
#include "runtime/settings/scenario.hpp"
#include "runtime/storage/parameters.hpp"
#include <filesystem>
namespace mneme {

/// Initial weights [P] of a run. They are drawn from the seed; then weights from files that the scenario names replace
/// them. Fails if a file does not fit the net.
/// @param downstream net that the method trains on the net's outputs; may be null
/// @param backbone weights of model.backbone's scenario; empty: none
/// @param draws false: zeros instead of drawn weights, for validation
[[nodiscard]] expected<at::Tensor> starting_weights(const scenario& settings, const model& net, const model* downstream,
                                                    const std::filesystem::path& backbone, bool draws);

/// Weights of the downstream net in model.seed_weights; null if the file has none. Fails if they do not fit the net.
[[nodiscard]] expected<tensors_ref> downstream_weights(const scenario& settings, const model& net,
                                                       const model_ref& downstream);

/// Returns an error if the net is frozen and untrained, unless model.weights = "as-drawn" allows it.
[[nodiscard]] diagnostics untrained_frozen_net(const scenario& settings, const model& net);

} // namespace mneme
