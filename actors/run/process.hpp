/// process: what a process of mneme sets once, and how its systems of actors are configured.
#pragma once
#include <caf/actor_system_config.hpp>
namespace mneme {

/// Types of messages, LibTorch's threads and its errors. Called before anything is loaded; later calls do nothing more.
void prepare_process();
/// @param threads of the actors that have none of their own @param waits_for_nodes one of them looks for messages of
/// nodes (placement), and leaves others their turns
void configure(caf::actor_system_config& config, std::size_t threads, bool waits_for_nodes = false);

} // namespace mneme
