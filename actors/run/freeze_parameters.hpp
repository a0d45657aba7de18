/// freeze_parameters: freezes what model.frozen names in a run's net.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/models/model.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// The net with the parameters that model.frozen names frozen. Fails for entries that name nothing, and if the run
/// trains the net and every parameter that it would train is frozen.
[[nodiscard]] expected<model_ref> freeze_parameters(const scenario& settings, const model_ref& net);

} // namespace mneme
