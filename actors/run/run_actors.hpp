/// run_actors: creates the actors of a run and waits for its end.
#pragma once
#include "actors/run/recorder.hpp"
#include "actors/run/run_nodes.hpp"
#include "runtime/storage/checkpoint_file.hpp"
#include <atomic>
#include <caf/actor_system.hpp>
namespace mneme {

/// Arguments of the actors, apart from the run context.
struct run_actors_setup {
  recorder_setup recorder{};                        ///< run_to_end() sets its member `writer`.
  std::shared_ptr<checkpoint_folder> checkpoints{}; ///< Null: checkpoints are disabled.
  resume_state_ref past{};                          ///< Null for a new run.
  const std::atomic<int>* interrupts = nullptr;     ///< Above 0: end the run early.
  run_nodes_ref nodes{};                            ///< Hosts of the shards; null: all shards are local.
};

/// Runs the actors to the end of the run. Returns the summary even if summary.json could not be written.
[[nodiscard]] run_summary run_to_end(caf::actor_system& system, const run_context_ref& context, run_actors_setup setup);

} // namespace mneme
