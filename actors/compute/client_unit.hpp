/// client_unit: runs the clients of a worker's shards on the thread on which the worker runs.
#pragma once
#include <caf/execution_unit.hpp>
#include <caf/local_actor.hpp>
#include <caf/resumable.hpp>
#include <vector>
namespace mneme {

/// A client's turns are microseconds, too short to be worth another thread: handing them over, and sharing what they
/// read, would cost more than they take. So workers run in parallel, and the clients of a worker one after the other.
class client_unit final : public caf::execution_unit {
public:
  explicit client_unit(caf::local_actor& worker) : execution_unit(&worker.system()), worker_(worker) {}
  void exec_later(caf::resumable* client) override { ready_.push_back(client); }

  /// Runs `act`, which spawns clients or sends to clients only: those that become ready by it run with run_turns().
  template <class Act>
  auto within(Act act) {
    const context_guard guard(*this);
    return act();
  }

  /// Runs the clients that are ready, until none is.
  void run_turns() {
    for (std::size_t i = 0; i < ready_.size(); ++i) // may grow meanwhile
      resume(ready_[i]);
    ready_.clear();
  }

private:
  static constexpr std::size_t messages_max = 64; // of one turn

  /// What is spawned or made ready meanwhile runs in the unit.
  class context_guard {
  public:
    explicit context_guard(client_unit& unit) : worker_(unit.worker_), outside_(worker_.context()) {
      worker_.context(&unit);
    }
    ~context_guard() { worker_.context(outside_); }
    context_guard(const context_guard&) = delete;
    context_guard& operator=(const context_guard&) = delete;

  private:
    caf::local_actor& worker_;
    caf::execution_unit* outside_;
  };

  void resume(caf::resumable* client) {
    if (client->resume(this, messages_max) == caf::resumable::resume_later)
      ready_.push_back(client);
    else
      intrusive_ptr_release(client);
  }

  caf::local_actor& worker_;
  std::vector<caf::resumable*> ready_;
};

} // namespace mneme
