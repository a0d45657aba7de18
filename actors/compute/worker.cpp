#include "actors/compute/worker.hpp"
#include "actors/compute/compute_layout.hpp"
#include "actors/compute/enqueue_and_wake.hpp"
#include "actors/compute/run_batch.hpp"
#include "runtime/base/tuning.hpp"
#include <caf/typed_event_based_actor.hpp>
#include <thread>
namespace mneme {

worker_state::worker_state(worker_actor::pointer self, worker_id id, run_context_ref context,
                           std::shared_ptr<batch_queues> queues)
    : self_(self), id_(id), context_(std::move(context)), queues_(std::move(queues)),
      executor_(make_executor(context_->device, context_->features, context_->slices)), watch_(self, context_),
      shards_(static_cast<std::size_t>(context_->shards)) {
  for (std::uint32_t s = 0; s < shards_.size(); ++s)
    if (queues_->host_of(s) == id_)
      shards_[s] = std::make_unique<hosted_shard>(self, shard_id{s}, *context_);
}

worker_actor::behavior_type worker_state::make_behavior() {
  return {
      // CAF tries handlers in this order, so the most frequent message comes first.
      [this](round_progress& answer) {
        hosted(answer.to).on_round_progress(answer.id, std::move(answer.step));
        forward_pending(answer.to);
      },
      [this](worker_links& peers) {
        peers_ = std::move(peers);
        watch_.report_progress_to(peers_.recorder);
      },
      [this](start_rounds& wave) {
        const auto to = wave.to;
        hosted(to).start(std::move(wave));
        forward_pending(to);
      },
      [this](release& command) {
        hosted(command.to).release(std::move(command.batches));
        forward_pending(command.to);
      },
      [this](next_batch) { run_next(); },
      [this](batch_done& in) {
        hosted(in.to).on_batch_done(in.ids, std::move(in.done));
        forward_pending(in.to);
      },
      [this](const abandon& rounds) { hosted(rounds.to).forget(rounds.assignments); },
  };
}

shard& worker_state::hosted(shard_id id) {
  auto& held = shards_.at(id.value);
  MNEME_CHECK(held != nullptr, id.value, id_.value);
  return held->rounds;
}

void worker_state::forward_pending(shard_id id) {
  auto& from = hosted(id);
  if (!from.has_news()) // the usual case
    return;
  for (auto& report : from.take_reports())
    self_->send(peers_.scheduler, std::move(report));
  if (auto batches = from.take_batches(); !batches.empty())
    enqueue_and_wake(self_, *queues_, peers_.workers, id.value, std::move(batches));
}

/// Runs one batch. Then it handles pending messages before it continues with the next batch.
void worker_state::run_next() {
  if (context_->gate && context_->gate->should_wait()) // the node gateway wakes the worker after the results have been
                                                       // sent
    return;
  auto batch = queues_->take(id_);
  if (!batch)
    return keep_polling();
  has_computed_ = true;
  auto done = run_batch(batch->jobs, *executor_, *context_->busy_ns, &watch_);
  batch->jobs.clear();
  hand_over(std::move(*batch), std::move(done));
  self_->send(self_, next_batch{});
}

/// Polls for a short time, because the next round often starts within microseconds and waking a thread takes longer.
void worker_state::keep_polling() {
  if (!has_own_thread(*context_, id_))
    return;
  for (int polls = 0; polls < tuning::mailbox_polls && self_->mailbox().empty(); ++polls)
    std::this_thread::yield();
}

void worker_state::hand_over(ready_batch batch, outcomes done) {
  if (const auto party = queues_->party_of(batch.queue))
    return self_->send(peers_.parties.at(*party), batch_done{.ids = std::move(batch.ids), .done = std::move(done)});
  const shard_id owner{static_cast<std::uint32_t>(batch.queue)};
  if (shards_.at(batch.queue)) {
    hosted(owner).on_batch_done(batch.ids, std::move(done));
    return forward_pending(owner);
  }
  self_->send(peers_.workers.at(queues_->host_of(batch.queue).value),
              batch_done{.to = owner, .ids = std::move(batch.ids), .done = std::move(done)});
}

} // namespace mneme
