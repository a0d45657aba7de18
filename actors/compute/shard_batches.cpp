// A shard's batches: which of its clients' jobs run together, and who runs them.
#include "actors/compute/shard.hpp"
#include "actors/compute/worker.hpp"
#include "actors/protocol/batch_rules_of.hpp"
#include "actors/protocol/recorder_clock.hpp"
#include <caf/typed_event_based_actor.hpp>
#include <thread>
namespace mneme {

void shard_state::run(release& what) {
  batches_missing_ += what.batches.size();
  turn_ = 0;
  if (world_->shards_compute) {
    std::vector<ready_batch> all;
    for (auto& ids : what.batches)
      all.push_back(made_ready(std::move(ids)));
    lines_->put(report_.from, std::move(all));
  } else {
    released_.assign(std::move_iterator(what.batches.begin()), std::move_iterator(what.batches.end()));
  }
  feed();
}

ready_batch shard_state::made_ready(composition ids) {
  ready_batch made{.owner = shard_actor{self_}, .ids = std::move(ids), .what = {.turn = turn_++}};
  made.what.jobs.reserve(made.ids.size());
  for (const auto& id : made.ids)
    made.what.jobs.push_back({.id = id, .what = std::move(clients_.at(id.assignment).parked.at(id.step))});
  return made;
}

std::optional<ready_batch> shard_state::next() {
  if (world_->shards_compute) {
    auto mine = lines_->own(report_.from);
    return mine ? std::move(mine) : lines_->of_others();
  }
  if (released_.empty())
    return std::nullopt;
  auto made = made_ready(std::move(released_.front()));
  released_.pop_front();
  return made;
}

/// Releases what has been started, in the order in which clients were, which is that of their ids. All shards are taken
/// to have as much: how others' jobs are cut is not known here.
void shard_state::run_at_once() {
  at_once_ = false;
  wave_report part{.from = report_.from, .issued = std::exchange(report_.issued, {}), .last = false};
  std::vector<parked_job> parked;
  for (const auto& one : part.issued) {
    const auto& client = clients_.at(one.id.assignment);
    const auto due = client.ready + one.takes + world_->people->upload_time(client.who, one.bytes);
    parked.push_back({.job = one, .due = due, .shard = report_.from});
  }
  release all{.to = report_.from};
  for (auto& planned : plan_batches(parked, batch_rules_of(*world_), world_->shards))
    all.batches = std::move(planned.batches);
  part.released = all.batches;
  self_->send(scheduler_, std::move(part));
  if (all.batches.empty())
    report();
  else
    run(all);
}

/// Lets batches run: all at once; but one after the other on a thread that has other things to do, so that what one has
/// computed is folded before the next takes its place in the caches.
void shard_state::feed() {
  if (executor_) {
    if (!std::exchange(next_is_due_, true))
      self_->send(self_, next_batch{});
    return;
  }
  const bool one_by_one = world_->shards_compute || (world_->workers == 1 && world_->device == "cpu");
  while (!one_by_one || (batches_out_ == 0 && clients_busy_ == 0)) {
    auto one = next();
    if (!one)
      return;
    send_to_pool(std::move(*one));
  }
}

void shard_state::send_to_pool(ready_batch one) {
  ++batches_out_;
  struct sender {
    shard_actor owner;
    composition ids;
  };
  auto from = std::make_shared<sender>(sender{std::move(one.owner), std::move(one.ids)});
  self_->request(pool_, caf::infinite, std::move(one.what))
      .then(
          [this, from](batch_outcomes& done) {
            --batches_out_;
            give(from->owner, from->ids, std::move(done));
          },
          [this, from](const caf::error& why) {
            --batches_out_;
            batch_outcomes none;
            none.all.assign(from->ids.size(), job_outcome{caf::to_string(why)});
            give(from->owner, from->ids, std::move(none));
          });
}

/// On a thread of its own: one batch, then what its clients answer, then the next. When there is none left, those of
/// others.
void shard_state::run_next() {
  next_is_due_ = false;
  auto one = next();
  if (!one)
    return stay_awake();
  auto done = outcomes_of(one->what, *executor_, *world_->busy_ns);
  one->what.jobs.clear();
  give(one->owner, one->ids, std::move(done));
}

/// The next round is often a few microseconds away, and a thread that sleeps takes longer to wake.
void shard_state::stay_awake() {
  constexpr double seconds_max = 600e-6;
  const recorder_stopwatch idle;
  while (self_->mailbox().empty() && idle.seconds() < seconds_max)
    std::this_thread::yield();
}

void shard_state::give(const shard_actor& owner, const composition& ids, batch_outcomes done) {
  if (owner == self_)
    return take(ids, done);
  self_->send(owner, helped_out{ids, std::move(done)});
  feed();
}

} // namespace mneme
