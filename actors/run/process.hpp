/// process: process-wide setup, and configuration of actor systems.
#pragma once
#include <caf/actor_system_config.hpp>
namespace mneme {

/// Options of an actor system.
struct system_options {
  bool waits_for_nodes = false; ///< true: the placement actor polls for messages of nodes, so actors must yield often.
  bool measures_actors = false; ///< true: exports mailbox lengths and processing times of each kind of actor.
};

/// Registers message types and sets LibTorch's threads and error handling. Must be called before anything is loaded;
/// later calls have no effect.
void prepare_process();
/// Sets options of an actor system. @param threads number of threads for actors that have no thread of their own
void configure(caf::actor_system_config& config, std::size_t threads, const system_options& options = {});
/// Clears settings that CAF reads only at the start of a system. CAF looks up stream settings for each spawned actor;
/// without any settings this lookup ends immediately.
/// @pre a system was created from `config` and has no actors of mneme yet
void forget_settings(caf::actor_system_config& config);

} // namespace mneme
