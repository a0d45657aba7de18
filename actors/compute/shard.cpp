#include "actors/compute/shard.hpp"
#include "actors/compute/client.hpp"
#include "runtime/method/wire.hpp"
#include "runtime/training/executor.hpp"
#include <algorithm>
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

namespace {

/// Of rounds that are finished while others are at work, uploads of so many bytes are reported together.
constexpr std::int64_t finished_bytes_max = std::int64_t{1} << 17;

/// Whether key_of and chosen_width are bound to answer alike.
bool same_kind(const train_job& a, const train_job& b) {
  return a.net == b.net && a.objective == b.objective && a.samples.source == b.samples.source && a.options == b.options;
}

template <class Item, class Id>
void sort_unless_sorted(std::vector<Item>& all, Id id) {
  auto earlier = [&](const Item& a, const Item& b) { return id(a) < id(b); };
  if (!std::is_sorted(all.begin(), all.end(), earlier))
    std::sort(all.begin(), all.end(), earlier);
}

} // namespace

shard_state::shard_state(shard_actor::pointer self, shard_id which, world_ref world, pool_actor pool,
                         scheduler_actor scheduler, std::shared_ptr<batch_lines> lines)
    : self_(self), world_(std::move(world)), pool_(std::move(pool)), scheduler_(std::move(scheduler)),
      lines_(std::move(lines)), unit_(*self) {
  report_.from = which;
  if (world_->shards_compute && which.value > 0)
    executor_ = make_executor(world_->device, world_->features);
}

shard_actor::behavior_type shard_state::make_behavior() {
  return {
      [this](start_rounds& wave) { start(wave); },
      [this](round_answer& answer) { take(answer); },
      [this](release& what) { run(what); },
      [this](next_batch) { run_next(); },
      [this](helped_out& in) { take(in.ids, in.done); },
      [this](const abandon& what) { forget(what); },
  };
}

void shard_state::start(start_rounds& wave) {
  clients_busy_ += wave.all.size();
  at_once_ = wave.at_once;
  report_.issued.reserve(wave.all.size());
  unit_.run([&] {
    for (std::size_t i = 0; i < wave.all.size(); ++i) {
      auto& one = wave.all[i];
      const auto id = one.id;
      one.samples = world_->rows->view(one.client, one.in->place.task);
      auto& client = clients_.insert(id, {.who = one.client, .ready = wave.ready.at(i)});
      client.actor = self_->spawn<client_actor::stateful_impl<client_state>, caf::hidden>(
          shard_actor{self_}, std::cref(*world_), std::move(one));
    }
  });
}

void shard_state::take(round_answer& answer) {
  auto* const client = clients_.find(answer.id);
  if (!client) // abandoned on its way
    return;
  if (auto* wanted = std::get_if<plan>(&answer.step)) {
    park(*client, answer.id, std::move(*wanted));
  } else {
    if (auto* result = std::get_if<client_result>(&answer.step)) {
      const auto bytes = wire_bytes(result->upload.get(), world_->what.devices.wire);
      report_.finished.push_back({.id = answer.id, .result = std::move(*result), .bytes = bytes});
      finished_bytes_ += bytes;
    } else {
      report_.failed.push_back(std::get<round_failure>(std::move(answer.step)));
    }
    clients_.erase(answer.id);
  }
  --clients_busy_;
  report();
  feed();
}

void shard_state::park(hosted& client, assignment_id id, plan wanted) {
  client.known.assign(wanted.size(), job_outcome{std::string{}});
  client.outcomes_missing = wanted.size();
  for (std::uint32_t step = 0; step < wanted.size(); ++step) {
    const auto& what = wanted[step];
    const auto& kind = kind_of(what);
    report_.issued.push_back({.id = {id, client.stage, step},
                              .key = kind.key,
                              .rows = rows_of(what),
                              .bytes = outcome_bytes(what),
                              .width = kind.width,
                              .takes = world_->people->compute_time(client.who, rows_of(what))});
  }
  client.parked = std::move(wanted);
}

const shard_state::job_kind& shard_state::kind_of(const work& what) {
  const auto* training = std::get_if<train_job>(&what);
  if (training && last_.net && same_kind(*training, last_))
    return last_kind_;
  const auto fixed = world_->what.worker.models_max;
  last_kind_ = {.key = key_of(what), .width = fixed > 0 ? fixed : chosen_width(what, world_->device)};
  last_ = {};
  if (training) {
    last_.net = training->net;
    last_.objective = training->objective;
    last_.samples.source = training->samples.source;
    last_.options = training->options;
  }
  return last_kind_;
}

void shard_state::take(const composition& ids, batch_outcomes& done) {
  --batches_missing_;
  unit_.run([&] {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      auto* const client = clients_.find(ids[i].assignment);
      if (!client)
        continue;
      client->known.at(ids[i].step) = std::move(done.all.at(i));
      if (--client->outcomes_missing > 0)
        continue;
      ++client->stage;
      ++clients_busy_;
      self_->send(client->actor, job_outcomes{std::move(client->known)});
    }
  });
  report();
  feed();
}

void shard_state::forget(const abandon& what) {
  unit_.run([&] {
    for (const auto& id : what.all)
      if (auto* const client = clients_.find(id)) {
        self_->send_exit(client->actor, caf::exit_reason::kill);
        clients_.erase(id);
      }
  });
}

/// The barrier: the last report of a wave is sent when all is quiet, in id order whatever the order of arrival. Rounds
/// that are finished before are reported as they come: their uploads need not wait in memory for the others.
void shard_state::report() {
  const bool quiet = clients_busy_ + batches_missing_ == 0;
  if (quiet && at_once_)
    return run_at_once();
  if (!quiet && finished_bytes_ < finished_bytes_max)
    return;
  auto id = [](const auto& one) { return one.id; };
  sort_unless_sorted(report_.finished, id);
  finished_bytes_ = 0;
  wave_report next{.from = report_.from};
  if (quiet) {
    sort_unless_sorted(report_.issued, id);
    sort_unless_sorted(report_.failed, [](const round_failure& one) { return one.last_job; });
    std::swap(next, report_);
  } else {
    std::swap(next.finished, report_.finished);
    next.last = false;
  }
  self_->send(scheduler_, std::move(next));
}

} // namespace mneme
