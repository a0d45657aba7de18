/// enqueue_and_wake: notifies workers of ready batches.
#pragma once
#include "actors/compute/batch_queues.hpp"
#include "actors/protocol/interfaces.hpp"
namespace mneme {

/// Appends `batches` to a queue and wakes idle workers. @param workers all workers, by number
template <class Self>
void enqueue_and_wake(Self* self, batch_queues& queues, const std::vector<worker_actor>& workers, std::size_t line,
                      std::vector<ready_batch> batches) {
  for (const auto worker : queues.put(line, std::move(batches)))
    self->send(workers.at(worker.value), next_batch{});
}

} // namespace mneme
