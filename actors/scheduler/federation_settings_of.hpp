/// federation_settings_of: what a run's federation decides by.
#pragma once
#include "actors/protocol/run_context.hpp"
#include "runtime/federation/federation_settings.hpp"
namespace mneme {

[[nodiscard]] federation_settings federation_settings_of(const run_context& run);

} // namespace mneme
