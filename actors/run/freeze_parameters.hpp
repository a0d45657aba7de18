/// freeze_parameters: freezes the parameters of a run's net that model.frozen names.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/models/model.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Returns the net in which the parameters that model.frozen names are frozen. Fails if an entry matches no parameter,
/// and if the run trains the net but no trainable parameter is left.
[[nodiscard]] expected<model_ref> freeze_parameters(const scenario& settings, const model_ref& net);

} // namespace mneme
