/// client_unit: runs the clients of a shard on the thread on which the shard runs.
#pragma once
#include <caf/execution_unit.hpp>
#include <caf/local_actor.hpp>
#include <caf/resumable.hpp>
#include <vector>
namespace mneme {

/// A client's turns are microseconds, too short to be worth another thread: handing them over, and sharing what they
/// read, would cost more than they take. So shards run in parallel, and the clients of a shard one after the other.
class client_unit final : public caf::execution_unit {
public:
  explicit client_unit(caf::local_actor& shard) : execution_unit(&shard.system()), shard_(shard) {}
  void exec_later(caf::resumable* client) override { ready_.push_back(client); }

  /// Runs `act`, which spawns clients or sends to clients only, then the clients that have become ready by it.
  template <class Act>
  void run(Act act) {
    auto* const outside = shard_.context();
    shard_.context(this);
    act();
    shard_.context(outside);
    for (std::size_t i = 0; i < ready_.size(); ++i) // may grow meanwhile
      resume(ready_[i]);
    ready_.clear();
  }

private:
  static constexpr std::size_t messages_max = 64; // of one turn

  void resume(caf::resumable* client) {
    if (client->resume(this, messages_max) == caf::resumable::resume_later)
      ready_.push_back(client);
    else
      intrusive_ptr_release(client);
  }

  caf::local_actor& shard_;
  std::vector<caf::resumable*> ready_;
};

} // namespace mneme
