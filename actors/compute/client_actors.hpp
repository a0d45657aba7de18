/// client_actors: hosts the clients of a shard as actors on their worker's thread.
#pragma once
#include "actors/compute/client_execution_unit.hpp"
#include "actors/compute/client_host.hpp"
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/run_context.hpp"
namespace mneme {

/// Spawns one actor for each assignment; the actor replies to the worker by messages.
class client_actors final : public client_host {
public:
  /// @param run must outlive the worker
  client_actors(worker_actor::pointer worker, shard_id home, const run_context& run);
  [[nodiscard]] std::unique_ptr<client_handle> start(assignment assigned) override;
  void run_turns() override { unit_.run_turns(); }

private:
  class hosted;

  worker_actor::pointer worker_;
  shard_id shard_;
  const run_context& run_;
  client_execution_unit unit_;
};

} // namespace mneme
