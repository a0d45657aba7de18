/// shard: hosts the clients of one part of the population, parks their jobs, and feeds the workers.
#pragma once
#include "actors/interfaces.hpp"
#include "actors/world.hpp"
#include <map>
#include <unordered_map>
namespace mneme {

class shard_state {
public:
  static constexpr const char* name = "mneme.shard";
  shard_state(shard_actor::pointer self, shard_id which, world_ref world, pool_actor pool, scheduler_actor scheduler);
  shard_actor::behavior_type make_behavior();

private:
  /// A client at work: its jobs of the present stage, and the outcomes that have come so far.
  struct hosted {
    client_actor actor{};
    std::uint32_t stage = 0;
    plan parked{}; // jobs not yet sent to a worker keep their place
    outcomes known{};
    std::size_t outcomes_missing = 0;
  };

  void start(start_rounds& wave);
  void take(round_answer& answer);
  void park(hosted& client, assignment_id id, plan wanted);
  void run(release& what);
  void take(const composition& ids, batch_outcomes& done);
  void fail(const composition& ids, const std::string& why);
  void forget(const abandon& what);
  void report_if_quiet();
  std::int64_t width_of(const work& what, const fuse_key& key);

  shard_actor::pointer self_;
  world_ref world_;
  pool_actor pool_;
  scheduler_actor scheduler_;
  std::unordered_map<assignment_id, hosted> clients_;
  std::map<fuse_key, std::int64_t> widths_;
  std::size_t busy_ = 0; // clients that run, and batches that are out: the barrier waits for them
  wave_report report_;
};

} // namespace mneme
