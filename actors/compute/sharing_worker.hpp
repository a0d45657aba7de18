/// sharing_worker: worker that shares its thread with actors that do not compute.
#pragma once
#include "actors/compute/worker.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

/// Yields the thread after each message, so that the results of a batch are folded before later batches displace them
/// from the caches. Other actors keep the thread until their mailbox is empty.
class sharing_worker final : public worker_actor::stateful_impl<worker_state> {
public:
  using stateful = worker_actor::stateful_impl<worker_state>;
  using stateful::stateful;
  caf::resumable::resume_result resume(caf::execution_unit* unit, std::size_t messages_max) override {
    for (std::size_t i = 1;; ++i) {
      const auto result = stateful::resume(unit, 1);
      if (result != caf::resumable::resume_later || i >= messages_max || this->state.take_has_computed())
        return result;
    }
  }
};

} // namespace mneme
