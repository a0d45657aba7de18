/// process: process-wide setup, and configuration of actor systems.
#pragma once
#include <caf/actor_system_config.hpp>
namespace mneme {

/// Registers message types and sets LibTorch's threads and error handling. Call before anything is loaded; repeated
/// calls have no effect.
void prepare_process();
/// @param threads for actors without a thread of their own @param waits_for_nodes one actor (placement) polls for
/// messages of nodes, so others must get their turns
void configure(caf::actor_system_config& config, std::size_t threads, bool waits_for_nodes = false);
/// Clears settings that are read only when a system starts. CAF looks up stream settings for each spawned actor;
/// without any settings this lookup ends immediately.
/// @pre a system was created from `config`, and it has no actors of ours yet
void forget_settings(caf::actor_system_config& config);

} // namespace mneme
