/// client: actor that runs one round of one client and ends with this round.
#pragma once
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/run_context.hpp"
#include "runtime/method/client_round_runner.hpp"
namespace mneme {

class client_state {
public:
  static constexpr const char* name = "mneme.client";
  /// @param host worker of the client's shard
  /// @param run must outlive the worker and its clients
  client_state(client_actor::pointer self, worker_actor host, shard_id home, const run_context& run,
               assignment assigned);
  client_actor::behavior_type make_behavior();

private:
  void answer(round_step step);

  client_actor::pointer self_;
  worker_actor host_;
  shard_id shard_;
  client_round_runner round_;
};

} // namespace mneme
