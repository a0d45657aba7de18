/// process: what a process of mneme sets once, and how its systems of actors are configured.
#pragma once
#include <caf/actor_system_config.hpp>
namespace mneme {

/// Types of messages, LibTorch's threads and its errors. Called before anything is loaded; later calls do nothing more.
void prepare_process();
/// @param threads of the actors that have none of their own
void configure(caf::actor_system_config& config, std::size_t threads);

} // namespace mneme
