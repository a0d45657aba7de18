#include "runtime/federation/client_work.hpp"
#include "runtime/population/staleness.hpp"
#include <algorithm>
#include <cmath>
namespace mneme {

bool client_work::stage_over(assignment_in_flight& owner) {
  if (owner.drops_out) {
    start_drop_out(owner);
    return false;
  }
  if (owner.stages_reached < owner.stages.size()) {
    out_.record("client", owner.stages_reached == 0 ? "start" : "next_stage", owner.client);
    const auto duration = owner.stages[owner.stages_reached++];
    clock_.expect(owner, federation_event::kind::stage_over, clock_.now() + duration);
    return false;
  }
  if (!owner.uploads()) {
    end_without_upload(owner);
    return true;
  }
  start_upload(owner);
  return false;
}

/// Schedules the drop-out of a client that has started its first job.
void client_work::start_drop_out(assignment_in_flight& owner) {
  out_.record("client", "start", owner.client);
  const auto stage = owner.stages.empty() ? virtual_duration{0} : owner.stages.front();
  const auto share = settings_.clients->dropout_point(owner.client, dispatch_.pool().visit_of(owner.client));
  const virtual_duration left(static_cast<std::int64_t>(std::ceil(share * static_cast<double>(stage.count()))));
  clock_.expect(owner, federation_event::kind::drop_out, clock_.now() + left);
}

/// Starts the transfers of all parts at the same time, each on its own link.
void client_work::start_upload(assignment_in_flight& owner) {
  const auto send = [&](party_id to) {
    out_.record("client", row_of(to).leaves_event, owner.client, owner.sends[index_of(to)]);
  };
  send(party_id::server);
  for (const auto to : settings_.other_parties)
    if (owner.sends[index_of(to)] > 0)
      send(to);
  if (links_.share(link_direction::up))
    links_.begin(link_direction::up, owner, owner.upload_bytes());
  schedule_arrival(owner, {.at = owner.sent_at()});
}

/// Schedules the next arrival. Parts for other parties arrive one by one; the upload is delivered after the last part.
void client_work::schedule_arrival(assignment_in_flight& owner, party_arrival before) {
  party_arrival next{.at = never};
  for (const auto to : settings_.other_parties)
    if (owner.sends[index_of(to)] > 0) {
      const party_arrival there{.at = owner.sent_at() + upload_time(*settings_.clients, to, owner.sent_to(to)),
                                .where = to};
      if (before < there && there < next)
        next = there;
    }
  if (next.at == never && links_.share(link_direction::up)) {
    owner.is_uploading = owner.waits_for_link = true;
    if (owner.upload_arrives == never)
      return;
    next.at = owner.upload_arrives;
  } else if (next.at == never) {
    next.at = owner.sent_at() + owner.upload_time(*settings_.clients);
  }
  clock_.expect(owner, federation_event::kind::arrival, std::max(clock_.now(), next.at), next.where);
}

void client_work::links_changed() {
  for (const auto& [direction, id] : links_.take_ended()) {
    auto& owner = in_flight_.at(id);
    const auto there =
        add_saturating(clock_.now(), settings_.clients->devices().latency(owner.client, direction, owner.visit));
    if (direction == link_direction::down) { // the advice of other parties may arrive later
      const auto planned = owner.planned_download_end();
      owner.delay = std::max(there, planned) - planned;
      clock_.expect(owner, federation_event::kind::stage_over, planned + owner.delay);
      continue;
    }
    owner.upload_arrives = there;
    if (owner.waits_for_link)
      clock_.expect(owner, federation_event::kind::arrival, there);
  }
}

bool client_work::arrive(assignment_in_flight& owner, party_id where) {
  if (where == party_id::server) {
    deliver(owner);
    return true;
  }
  const auto& party = row_of(where);
  const auto bytes = owner.sends[index_of(where)];
  auto sent = delivery_of(owner, where);
  out_.record(party.name, party.arrives_event, owner.client, bytes);
  out_.log().received(clock_.now(), where, sent, bytes);
  deliveries bundle{.to = where};
  bundle.uploads.push_back(std::move(sent));
  out_.command(std::move(bundle));
  schedule_arrival(owner, {.at = clock_.now(), .where = where});
  return false;
}

void client_work::deliver(assignment_in_flight& owner) {
  const auto& server = row_of(party_id::server);
  const auto bytes = owner.upload_bytes();
  waves_.delivered(owner);
  out_.record(server.name, server.arrives_event, owner.client, bytes);
  auto upload = delivery_of(owner, party_id::server);
  if (settings_.is_async()) {
    upload.start = owner.in->weights;
    upload.staleness = std::int64_t{round_.info.round.value} - std::int64_t{owner.round.value};
    upload.staleness_weight = staleness_weight(settings_.rounds, upload.staleness);
  }
  out_.log().delivered(clock_.now(), upload, bytes);
  out_.log().trained(owner.result.losses);
  ++round_.folded;
  clock_.record_progress();
  dispatch_.end(owner);
  deliveries_.add(std::move(upload), bytes);
  if (deliveries_.is_due())
    flush_deliveries();
}

/// Ends the work of a client outside the cohort and commits its memory.
void client_work::end_without_upload(assignment_in_flight& owner) {
  waves_.delivered(owner);
  out_.record("client", row_of(owner.activity_kind).ends_event, owner.client);
  out_.log().ended_activity(clock_.now(), owner.client);
  dispatch_.end(owner);
}

delivery client_work::delivery_of(assignment_in_flight& owner, party_id to) const {
  return {.assignment = owner.id,
          .from = owner.client,
          .started_from = owner.round,
          .upload = std::move(owner.result.*row_of(to).part),
          .rows = owner.result.rows};
}

void client_work::flush_deliveries() {
  if (auto bundle = deliveries_.take())
    out_.command(std::move(*bundle));
}

} // namespace mneme
