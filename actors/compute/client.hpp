/// client: one round of one client.
#pragma once
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/world.hpp"
namespace mneme {

class client_state {
public:
  static constexpr const char* name = "mneme.client";
  /// @param world of the shard, which outlives its clients
  client_state(client_actor::pointer self, shard_actor host, const world& world, assignment what);
  client_actor::behavior_type make_behavior();

private:
  void tell(round_step step);

  client_actor::pointer self_;
  shard_actor host_;
  const world& world_;
  client_run run_;
};

} // namespace mneme
