/// process: what a process of mneme sets once, and how its systems of actors are configured.
#pragma once
#include <caf/actor_system_config.hpp>
namespace mneme {

/// Types of messages, LibTorch's threads and its errors. Called before anything is loaded; later calls do nothing more.
void prepare_process();
/// @param threads of the actors that have none of their own @param waits_for_nodes one of them looks for messages of
/// nodes (placement), and leaves others their turns
void configure(caf::actor_system_config& config, std::size_t threads, bool waits_for_nodes = false);
/// Forgets what only the start of a system reads. CAF looks for settings of streams, which nobody has, whenever an
/// actor is spawned, as clients are; where there are no settings at all it finds that out at once.
/// @pre a system has been made of `config`, and has no actors of ours yet
void forget_settings(caf::actor_system_config& config);

} // namespace mneme
