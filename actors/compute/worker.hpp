/// worker and pool: batches of jobs on devices.
#pragma once
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/world.hpp"
#include "runtime/training/executor.hpp"
#include <caf/typed_response_promise.hpp>
#include <map>
namespace mneme {

/// Of batches that take milliseconds: a worker's waiting for the next ones would cost more than an uneven end.
inline constexpr double multiplications_of_short = 1e8;
/// Of a batch that takes microseconds: to wake another thread for it would cost more.
inline constexpr double multiplications_of_trifle = 1e4;

/// Runs `what` and counts how long it takes. A failure, LibTorch's included, is a text.
[[nodiscard]] batch_outcomes outcomes_of(const batch& what, executor& on, std::atomic<std::int64_t>& busy_ns);

/// Spawned detached: numeric work never holds up the actors' threads.
class worker_state {
public:
  static constexpr const char* name = "mneme.worker";
  worker_state(worker_actor::pointer, world_ref world);
  worker_actor::behavior_type make_behavior();

private:
  world_ref world_;
  std::unique_ptr<executor> executor_;
};

/// Gives batches to workers that are free; those that are over before a worker's thread is awake it runs itself. So it
/// does with all short ones where there is one worker: on one thread, results are folded from the cache they are in.
class pool_state {
public:
  static constexpr const char* name = "mneme.pool";
  pool_state(pool_actor::pointer self, world_ref world, std::vector<worker_actor> workers);
  pool_actor::behavior_type make_behavior();

private:
  using promise = caf::typed_response_promise<batch_outcomes>;
  struct waiting_batch {
    batch what{};
    promise answer{};
    double multiplications = 0.0;
  };
  struct crew_member {
    worker_actor who{};
    std::size_t given = 0; // bundles it has not answered
  };
  void feed();
  void give(crew_member& to);
  [[nodiscard]] crew_member& least_given();
  [[nodiscard]] std::vector<waiting_batch> next_ones();

  pool_actor::pointer self_;
  world_ref world_;
  std::unique_ptr<executor> executor_; // on a CPU
  std::vector<crew_member> crew_;
  std::multimap<std::size_t, waiting_batch> waiting_; // by turn
};

} // namespace mneme
