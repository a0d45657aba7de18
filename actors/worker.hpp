/// worker and pool: batches of jobs on devices.
#pragma once
#include "actors/interfaces.hpp"
#include "actors/recorder_clock.hpp"
#include "actors/world.hpp"
#include "runtime/executor.hpp"
#include <caf/typed_response_promise.hpp>
#include <deque>
namespace mneme {

/// Spawned detached: numeric work never holds up the actors' threads.
class worker_state {
public:
  static constexpr const char* name = "mneme.worker";
  worker_state(worker_actor::pointer self, const world_ref& world, recorder_actor recorder);
  worker_actor::behavior_type make_behavior();

private:
  batch_outcomes run(const batch& what);

  worker_actor::pointer self_;
  recorder_actor recorder_;
  std::unique_ptr<executor> executor_;
};

class pool_state {
public:
  static constexpr const char* name = "mneme.pool";
  pool_state(pool_actor::pointer self, std::vector<worker_actor> workers);
  pool_actor::behavior_type make_behavior();

private:
  using promise = caf::typed_response_promise<batch_outcomes>;
  struct waiting_batch {
    batch what{};
    promise answer{};
    bool is_short = false;
  };
  struct crew_member {
    worker_actor who{};
    std::size_t given = 0; // batches it has not answered
  };
  void feed();
  void give(crew_member& to);
  [[nodiscard]] crew_member& least_given();

  pool_actor::pointer self_;
  std::vector<crew_member> crew_;
  std::deque<waiting_batch> waiting_;
};

} // namespace mneme
