/// client_execution_unit: CAF execution unit that runs the clients of a worker's shards on the worker's thread.
#pragma once
#include <caf/execution_unit.hpp>
#include <caf/local_actor.hpp>
#include <caf/resumable.hpp>
#include <vector>
namespace mneme {

/// Client turns take microseconds, less time than moving a client to another thread. The clients of one worker
/// therefore run one after another on its thread, while the workers run in parallel.
class client_execution_unit final : public caf::execution_unit {
public:
  explicit client_execution_unit(caf::local_actor& worker) : execution_unit(&worker.system()), worker_(worker) {}
  void exec_later(caf::resumable* client) override { ready_.push_back(client); }

  /// Runs `act`, which may only spawn clients or send to clients. The clients that it makes ready run in run_turns().
  template <class Act>
  auto run_inside(Act act) {
    const context_guard guard(*this);
    return act();
  }

  /// Runs ready clients until none is left.
  void run_turns() {
    for (std::size_t i = 0; i < ready_.size(); ++i) // ready_ can grow during the loop
      resume(ready_[i]);
    ready_.clear();
  }

private:
  static constexpr std::size_t messages_max = 64; // limit for one client in one turn

  /// While a guard exists, actors that are spawned or become ready run in this unit.
  class context_guard {
  public:
    explicit context_guard(client_execution_unit& unit) : worker_(unit.worker_), outside_(worker_.context()) {
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
