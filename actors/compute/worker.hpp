/// worker: actor that hosts shards and runs batches. It prefers batches of its own shards. No other actor computes.
#pragma once
#include "actors/compute/client_actors.hpp"
#include "actors/compute/program_monitor.hpp"
#include "actors/compute/shard.hpp"
#include "actors/protocol/interfaces.hpp"
#include "runtime/training/executor.hpp"
namespace mneme {

/// Hosts the shards that the queues assign to it. A worker either has sent itself next_batch, or the queues list it as
/// idle; then the sender of the next batch wakes it.
class worker_state {
public:
  static constexpr const char* name = "mneme.worker";
  worker_state(worker_actor::pointer self, worker_id id, run_context_ref context, std::shared_ptr<batch_queues> queues);
  worker_actor::behavior_type make_behavior();
  /// True if the worker has run a batch since the last call.
  [[nodiscard]] bool take_has_computed() noexcept { return std::exchange(has_computed_, false); }

private:
  /// A shard and its clients.
  struct hosted_shard {
    client_actors clients;
    shard rounds;
    hosted_shard(worker_actor::pointer host, shard_id id, const run_context& run)
        : clients(host, id, run), rounds(id, run, clients) {}
  };
  [[nodiscard]] shard& hosted(shard_id id);
  /// Forwards the output of a shard: reports to the scheduler, batches to its queue.
  void forward_pending(shard_id id);
  void run_next();
  void keep_polling();
  void hand_over(ready_batch batch, outcomes done);

  worker_actor::pointer self_;
  worker_id id_;
  run_context_ref context_;
  std::shared_ptr<batch_queues> queues_;
  std::unique_ptr<executor> executor_;
  program_monitor watch_;
  std::vector<std::unique_ptr<hosted_shard>> shards_; // by shard number; null: hosted by another worker
  worker_links peers_;
  bool has_computed_ = false;
};

} // namespace mneme
