#include "actors/shard.hpp"
#include "actors/client.hpp"
#include "runtime/executor.hpp"
#include "runtime/wire.hpp"
#include <algorithm>
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

shard_state::shard_state(shard_actor::pointer self, shard_id which, world_ref world, pool_actor pool,
                         scheduler_actor scheduler)
    : self_(self), world_(std::move(world)), pool_(std::move(pool)), scheduler_(std::move(scheduler)) {
  report_.from = which;
}

shard_actor::behavior_type shard_state::make_behavior() {
  return {
      [this](start_rounds& wave) { start(wave); },
      [this](round_answer& answer) { take(answer); },
      [this](release& what) { run(what); },
      [this](const abandon& what) { forget(what); },
  };
}

void shard_state::start(start_rounds& wave) {
  busy_ += wave.all.size();
  for (auto& one : wave.all) {
    const auto id = one.id;
    one.samples = world_->rows->view(one.client, one.in->place.task);
    auto& client = clients_[id];
    client.actor = self_->spawn<client_actor::stateful_impl<client_state>>(shard_actor{self_}, world_, std::move(one));
  }
}

void shard_state::take(round_answer& answer) {
  const auto found = clients_.find(answer.id);
  if (found == clients_.end()) // abandoned on its way
    return;
  if (auto* wanted = std::get_if<plan>(&answer.step)) {
    park(found->second, answer.id, std::move(*wanted));
  } else {
    if (auto* result = std::get_if<client_result>(&answer.step)) {
      const auto bytes = wire_bytes(result->upload.get(), world_->what.devices.wire);
      report_.finished.push_back({.id = answer.id, .result = std::move(*result), .bytes = bytes});
    } else {
      report_.failed.push_back(std::get<round_failure>(std::move(answer.step)));
    }
    clients_.erase(found);
  }
  --busy_;
  report_if_quiet();
}

void shard_state::park(hosted& client, assignment_id id, plan wanted) {
  client.known.assign(wanted.size(), job_outcome{std::string{}});
  client.outcomes_missing = wanted.size();
  for (std::uint32_t step = 0; step < wanted.size(); ++step) {
    const auto& what = wanted[step];
    const auto key = key_of(what);
    report_.issued.push_back({.id = {id, client.stage, step},
                              .key = key,
                              .rows = rows_of(what),
                              .bytes = outcome_bytes(what),
                              .width = width_of(what, key)});
  }
  client.parked = std::move(wanted);
}

std::int64_t shard_state::width_of(const work& what, const fuse_key& key) {
  const auto fixed = world_->what.worker.models_max;
  if (fixed > 0)
    return fixed;
  auto [entry, is_new] = widths_.try_emplace(key, 1);
  if (is_new)
    entry->second = chosen_width(what, world_->device);
  return entry->second;
}

void shard_state::run(release& what) {
  busy_ += what.batches.size();
  for (auto& ids : what.batches) {
    batch one;
    one.jobs.reserve(ids.size());
    for (const auto& id : ids)
      one.jobs.push_back({.id = id, .what = std::move(clients_.at(id.assignment).parked.at(id.step))});
    auto shared_ids = std::make_shared<composition>(std::move(ids));
    self_->request(pool_, caf::infinite, std::move(one))
        .then([this, shared_ids](batch_outcomes& done) { take(*shared_ids, done); },
              [this, shared_ids](const caf::error& why) { fail(*shared_ids, caf::to_string(why)); });
  }
}

void shard_state::fail(const composition& ids, const std::string& why) {
  batch_outcomes none;
  none.all.assign(ids.size(), job_outcome{why});
  take(ids, none);
}

void shard_state::take(const composition& ids, batch_outcomes& done) {
  --busy_;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto found = clients_.find(ids[i].assignment);
    if (found == clients_.end())
      continue;
    auto& client = found->second;
    client.known.at(ids[i].step) = std::move(done.all.at(i));
    if (--client.outcomes_missing > 0)
      continue;
    ++client.stage;
    ++busy_;
    self_->send(client.actor, job_outcomes{std::move(client.known)});
  }
  report_if_quiet();
}

void shard_state::forget(const abandon& what) {
  for (const auto& id : what.all)
    if (const auto found = clients_.find(id); found != clients_.end()) {
      self_->send_exit(found->second.actor, caf::exit_reason::kill);
      clients_.erase(found);
    }
}

/// The barrier: one report a wave, in id order whatever the order of arrival.
void shard_state::report_if_quiet() {
  if (busy_ > 0)
    return;
  auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
  std::sort(report_.issued.begin(), report_.issued.end(), by_id);
  std::sort(report_.finished.begin(), report_.finished.end(), by_id);
  std::sort(report_.failed.begin(), report_.failed.end(),
            [](const auto& a, const auto& b) { return a.last_job < b.last_job; });
  wave_report full{.from = report_.from, .issued = {}, .finished = {}, .failed = {}};
  std::swap(full, report_);
  self_->send(scheduler_, std::move(full));
}

} // namespace mneme
