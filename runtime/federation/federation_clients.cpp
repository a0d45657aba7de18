// The federation's clients: those at work, until their uploads are delivered; and those that come, go, or change task
// by themselves, at times that follow from keys alone.
#include "runtime/federation/federation.hpp"
#include "runtime/population/staleness.hpp"
#include <algorithm>
#include <cmath>
namespace mneme {

// -- clients at work --------------------------------------------------------------------------------------------------

/// Each assignment has one event in the queue.
void federation::expect(assignment_in_flight& owner, federation_event::kind next, virtual_time at) {
  owner.event_sequence = next_sequence_++;
  owner.is_uploading = next == federation_event::kind::arrival || next == federation_event::kind::proxy_arrival;
  queue_.push(at, {.event_kind = next, .assignment = owner.id});
}

/// A download or a stage is over: the next stage's time runs, or the upload is on its way.
void federation::stage_over(assignment_in_flight& owner) {
  if (owner.drops_out)
    return begin_to_drop_out(owner);
  if (owner.stages_reached < owner.stages.size()) {
    record("client", owner.stages_reached == 0 ? "start" : "next_stage", owner.client);
    const auto duration = owner.stages[owner.stages_reached++];
    return expect(owner, federation_event::kind::stage_over, queue_.now() + duration);
  }
  if (owner.looks)
    return end_look(owner);
  send_off(owner);
}

/// What goes to the proxy leaves at the same time, over a link of its own; the upload is delivered once both have
/// arrived.
void federation::send_off(assignment_in_flight& owner) {
  record("client", "upload", owner.client, owner.upload_bytes);
  if (owner.proxy_bytes == 0)
    return expect(owner, federation_event::kind::arrival, queue_.now() + upload_time(owner));
  record("client", "to_proxy", owner.client, owner.proxy_bytes);
  expect(owner, federation_event::kind::proxy_arrival,
         queue_.now() + settings_.clients->proxy_upload_time(owner.client, owner.proxy_bytes));
}

/// A device's speed is drawn each time that it is asked for, so it is asked for once. @pre `upload_bytes` is known
virtual_duration federation::upload_time(assignment_in_flight& owner) const {
  if (owner.upload_takes.count() < 0)
    owner.upload_takes = settings_.clients->upload_time(owner.client, owner.upload_bytes);
  return owner.upload_takes;
}

void federation::deliver_to_proxy(assignment_in_flight& owner) {
  delivery sent{.assignment = owner.id,
                .from = owner.client,
                .started_from = owner.round,
                .upload = std::move(owner.result.to_proxy),
                .rows = owner.result.rows};
  record("proxy", "receive", owner.client, owner.proxy_bytes);
  log_.received(queue_.now(), sent, owner.proxy_bytes);
  receive bundle;
  bundle.sent.push_back(std::move(sent));
  command(std::move(bundle));
  const auto at_server = owner.horizon + settings_.clients->upload_time(owner.client, owner.upload_bytes);
  expect(owner, federation_event::kind::arrival, std::max(queue_.now(), at_server));
}

/// The client is at its first job, and will not see its end.
void federation::begin_to_drop_out(assignment_in_flight& owner) {
  record("client", "start", owner.client);
  const auto stage = owner.stages.empty() ? virtual_duration{0} : owner.stages.front();
  const auto share = settings_.clients->dropout_point(owner.client, pool_.visit_of(owner.client));
  const virtual_duration left(static_cast<std::int64_t>(std::ceil(share * static_cast<double>(stage.count()))));
  expect(owner, federation_event::kind::drop_out, queue_.now() + left);
}

void federation::drop_out(const assignment_in_flight& owner) {
  ++log_.report().dropped;
  abandon_assignments({owner.id}, "drop_out");
  fill_places();
}

void federation::deliver(assignment_in_flight& owner) {
  const auto bytes = owner.upload_bytes;
  const bool is_of_this_round = owner.round == round_.place.round;
  results_.removed(owner);
  if (wave_.is_out())
    results_.delivered_during_wave(owner);
  record("server", "deliver", owner.client, bytes);
  auto upload = delivery_of(owner);
  log_.delivered(queue_.now(), upload, bytes);
  log_.trained(owner.result.losses);
  ++round_.folded;
  fruitless_events_ = 0;

  keep_result(owner);
  if (over_) // what it remembers could not be kept
    return;
  end_visit_of(owner);

  deliveries_.add(std::move(upload), bytes);
  if (deliveries_.is_due())
    hand_over_deliveries();
  if (settings_.is_async())
    return round_.folded == settings_.uploads_of_step() ? close() : fill_places();
  if (is_of_this_round && --round_.missing == 0)
    return close();
  if (round_.wants_clients)
    try_dispatch();
}

/// What the round has made of the client's memory holds from its delivery on, never before.
void federation::keep_result(assignment_in_flight& owner) {
  if (const auto* const counts = owner.result.counts.get())
    log_.counted(*counts);
  if (owner.result.memory)
    remember(owner.client, std::move(owner.result.memory));
}

void federation::end_visit_of(const assignment_in_flight& owner) {
  pool_.end_visit(owner.client);
  in_flight_.erase(owner.id);
}

/// A client outside the cohort has looked at its rows: what it has found holds from now on.
void federation::end_look(assignment_in_flight& owner) {
  const bool is_of_this_round = owner.round == round_.place.round;
  results_.removed(owner);
  record("client", "looked", owner.client);
  log_.looked(queue_.now(), owner.client);
  keep_result(owner);
  if (over_)
    return;
  end_visit_of(owner);
  if (is_of_this_round && --round_.missing == 0)
    return close();
  if (round_.wants_clients)
    try_dispatch();
}

delivery federation::delivery_of(assignment_in_flight& owner) const {
  delivery made{.assignment = owner.id,
                .from = owner.client,
                .started_from = owner.round,
                .upload = std::move(owner.result.upload),
                .rows = owner.result.rows};
  if (settings_.is_async()) {
    made.start = owner.in->weights;
    made.staleness = std::int64_t{round_.place.round.value} - std::int64_t{owner.round.value};
    made.staleness_weight = staleness_weight(settings_.rounds, made.staleness);
  }
  return made;
}

void federation::hand_over_deliveries() {
  if (auto bundle = deliveries_.take())
    command(std::move(*bundle));
}

void federation::folded() {
  deliveries_.folded();
  advance();
}

/// @param ids ascending
void federation::abandon_assignments(const std::vector<assignment_id>& ids, const char* why) {
  if (ids.empty())
    return;
  std::vector<abandon> told(static_cast<std::size_t>(settings_.shards));
  for (const auto id : ids) {
    const auto& owner = in_flight_.at(id);
    record("client", why, owner.client);
    pool_.end_visit(owner.client);
    if (owner.has_result())
      results_.removed(owner);
    else if (owner.is_at_shard() && !failures_.contains(id))
      told[shard_of(owner.client, told.size()).value].assignments.push_back(id);
    in_flight_.erase(id);
    failures_.erase(id);
  }
  start_queue_.erase(ids);
  for (std::uint32_t s = 0; s < told.size(); ++s)
    if (!told[s].assignments.empty()) {
      told[s].to = {s};
      command(std::move(told[s]));
    }
}

// -- churn ------------------------------------------------------------------------------------------------------------

/// The queue holds an event for the next change; one for a later change may be left from before a task was opened, and
/// will find nothing to do.
void federation::expect_churn() {
  const auto next = pool_.next_change();
  if (!next || *next >= churn_at_)
    return;
  churn_at_ = *next;
  queue_.push(churn_at_, {.event_kind = federation_event::kind::churn});
}

/// Makes the changes that are due.
void federation::keep_up() {
  if (churn_at_ <= queue_.now())
    churn_at_ = never;
  for (const auto& change : pool_.move_to(queue_.now()))
    take(change);
  log_.report().enrolled_max = std::max(log_.report().enrolled_max, pool_.enrolled());
  expect_churn();
}

void federation::churn() {
  keep_up();
  if (settings_.is_async())
    fill_places();
  else if (round_.wants_clients)
    try_dispatch();
  else if (round_.missing == 0)
    close();
}

void federation::take(const availability_change& change) {
  using kind = availability_change::kind;
  if (change.change_kind == kind::joined) {
    ++log_.report().joined;
    record("client", "enrol", change.client);
  } else if (change.change_kind == kind::left) {
    leave(change.client);
  } else if (change.change_kind == kind::entered_task) {
    ++log_.report().transitions;
    record("client", "task", change.client);
    const auto& clients = *settings_.clients;
    if (clients.member(change.client, change.task) == membership::left &&
        clients.member(change.client, {change.task.value - 1}) != membership::left)
      leave(change.client);
  }
  pool_.changed(change.client);
}

/// What a client was at is lost; what it remembers stays, if it may use that again.
void federation::leave(client_id client) {
  ++log_.report().left;
  if (const auto id = pool_.assignment_of(client)) {
    if (in_flight_.at(*id).round == round_.place.round && !settings_.is_async())
      --round_.missing;
    abandon_assignments({*id}, "left");
  } else {
    record("client", "left", client);
  }
  if (settings_.rejoin == rejoining::without_memory)
    memories_.erase(client);
}

/// A file that holds what memory has no room for can fail like any other.
memory_ref federation::remembered(client_id client) {
  try {
    return memories_.find(client);
  } catch (const std::exception& e) {
    fail(e.what());
    return nullptr;
  }
}

void federation::remember(client_id client, memory_ref memory) {
  try {
    memories_.put(client, std::move(memory));
  } catch (const std::exception& e) {
    fail(e.what());
  }
}

} // namespace mneme
