/// federation_settings_of: makes the constant inputs of a run's federation.
#pragma once
#include "actors/protocol/run_context.hpp"
#include "runtime/federation/federation_settings.hpp"
namespace mneme {

[[nodiscard]] federation_settings federation_settings_of(const run_context& run);

} // namespace mneme
