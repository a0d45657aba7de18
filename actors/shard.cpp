#include "actors/shard.hpp"
#include "actors/client.hpp"
#include "runtime/executor.hpp"
#include "runtime/wire.hpp"
#include <algorithm>
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

namespace {

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
                         scheduler_actor scheduler)
    : self_(self), world_(std::move(world)), pool_(std::move(pool)), scheduler_(std::move(scheduler)), unit_(*self) {
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
  report_.issued.reserve(wave.all.size());
  unit_.run([&] {
    for (auto& one : wave.all) {
      const auto id = one.id;
      one.samples = world_->rows->view(one.client, one.in->place.task);
      auto& client = clients_.insert(id, {});
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
    } else {
      report_.failed.push_back(std::get<round_failure>(std::move(answer.step)));
    }
    clients_.erase(answer.id);
  }
  --busy_;
  report_if_quiet();
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
                              .width = kind.width});
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
  unit_.run([&] {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      auto* const client = clients_.find(ids[i].assignment);
      if (!client)
        continue;
      client->known.at(ids[i].step) = std::move(done.all.at(i));
      if (--client->outcomes_missing > 0)
        continue;
      ++client->stage;
      ++busy_;
      self_->send(client->actor, job_outcomes{std::move(client->known)});
    }
  });
  report_if_quiet();
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

/// The barrier: one report a wave, in id order whatever the order of arrival.
void shard_state::report_if_quiet() {
  if (busy_ > 0)
    return;
  auto id = [](const auto& one) { return one.id; };
  sort_unless_sorted(report_.issued, id);
  sort_unless_sorted(report_.finished, id);
  sort_unless_sorted(report_.failed, [](const round_failure& one) { return one.last_job; });
  wave_report full{.from = report_.from, .issued = {}, .finished = {}, .failed = {}};
  std::swap(full, report_);
  self_->send(scheduler_, std::move(full));
}

} // namespace mneme
