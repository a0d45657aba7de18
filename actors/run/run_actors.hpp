/// run_actors: the actors of a run, from the first to the last of its messages.
#pragma once
#include "actors/nodes/node_pool.hpp"
#include "actors/nodes/node_records.hpp"
#include "actors/run/node_list.hpp"
#include "actors/run/recorder.hpp"
#include "runtime/storage/checkpoint_file.hpp"
#include <atomic>
#include <caf/actor_system.hpp>
namespace mneme {

/// What the actors are given besides their world.
struct run_actors_setup {
  recorder_setup recorder{};                        ///< Without its writer.
  std::shared_ptr<checkpoint_folder> checkpoints{}; ///< Null: none are written.
  past_ref past{};                                  ///< Null: the run begins.
  const std::atomic<int>* interrupts = nullptr;     ///< Above 0: the run ends early.
  std::shared_ptr<node_pool> nodes{};               ///< That host the shards; null: workers of this process do.
  std::shared_ptr<node_records> records{};          ///< What the summary says of them.
  renamed_nodes_function renamed_nodes{};           ///< May be null.
};

/// Runs the actors to the end; the summary is made even where it cannot be written.
[[nodiscard]] run_summary run_to_end(caf::actor_system& system, const run_context_ref& context, run_actors_setup setup);

} // namespace mneme
