/// shard: hosts the clients of one part of the population, parks their jobs, and lets them run.
#pragma once
#include "actors/compute/batch_lines.hpp"
#include "actors/compute/client_unit.hpp"
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/world.hpp"
#include "runtime/base/assignment_table.hpp"
#include "runtime/training/executor.hpp"
namespace mneme {

class shard_state {
public:
  static constexpr const char* name = "mneme.shard";
  /// @param lines of all shards
  shard_state(shard_actor::pointer self, shard_id which, world_ref world, pool_actor pool, scheduler_actor scheduler,
              std::shared_ptr<batch_lines> lines);
  shard_actor::behavior_type make_behavior();

private:
  /// A client at work: its jobs of the present stage, and the outcomes that have come so far.
  struct hosted {
    client_id who{};
    virtual_time ready{}; // when its download is over
    client_actor actor{};
    std::uint32_t stage = 0;
    plan parked{}; // jobs not yet sent to a worker keep their place
    outcomes known{};
    std::size_t outcomes_missing = 0;
  };
  struct job_kind {
    fuse_key key{};
    std::int64_t width = 1;
  };

  // shard.cpp: the clients
  void start(start_rounds& wave);
  void take(round_answer& answer);
  void park(hosted& client, assignment_id id, plan wanted);
  /// Finds key and width of a job; clients of one round nearly always ask for the same kind of training.
  const job_kind& kind_of(const work& what);
  void take(const composition& ids, batch_outcomes& done);
  void forget(const abandon& what);
  void report();

  // shard_batches.cpp: what runs together, and who runs it
  void run(release& what);
  void run_at_once();
  [[nodiscard]] ready_batch made_ready(composition ids);
  [[nodiscard]] std::optional<ready_batch> next();
  void feed();
  void send_to_pool(ready_batch one);
  void run_next();
  void stay_awake();
  void give(const shard_actor& owner, const composition& ids, batch_outcomes done);

  shard_actor::pointer self_;
  world_ref world_;
  pool_actor pool_;
  scheduler_actor scheduler_;
  std::shared_ptr<batch_lines> lines_;
  std::unique_ptr<executor> executor_; // on a thread of its own
  client_unit unit_;
  assignment_table<hosted> clients_;
  train_job last_; // without rows and weights: the training whose kind is last_kind_
  job_kind last_kind_;
  bool at_once_ = false;             // what is being started runs without waiting for a release
  std::deque<composition> released_; // and nobody has begun, but where shards share their batches
  std::size_t turn_ = 0;             // of the next batch that is made ready
  std::size_t clients_busy_ = 0;     // that run: the barrier waits for them,
  std::size_t batches_missing_ = 0;  // and for these that are released and without outcomes
  std::size_t batches_out_ = 0;      // sent to the pool and not answered
  bool next_is_due_ = false;         // this shard has told itself to run another batch
  wave_report report_;
  std::int64_t finished_bytes_ = 0; // of the uploads in it
};

} // namespace mneme
