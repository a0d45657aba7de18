#include "runtime/federation/dispatcher.hpp"
#include <algorithm>
namespace mneme {

dispatcher::dispatcher(const federation_settings& settings, run_clock& clock, current_round& round,
                       in_flight_table& in_flight, server_links& links, wave_scheduler& waves, run_output& out)
    : settings_(settings), clock_(clock), round_(round), in_flight_(in_flight), links_(links), waves_(waves), out_(out),
      pool_(settings), memories_(settings.memory_bytes_max) {}

void dispatcher::open_task(task_id task) {
  round_.open_task(task, settings_);
  out_.record("scheduler", "task");
  pool_.open_task(task, clock_.now());
  std::vector<assignment_id> left;
  for (const auto id : in_flight_.ids())
    if (pool_.member(in_flight_.at(id).client) == membership::left)
      left.push_back(id);
  abandon(left, "left");
  apply_churn();
}

// -- start of work ----------------------------------------------------------------------------------------------------

bool dispatcher::dispatch_cohort() {
  const auto cohort = pool_.draw_cohort(round_.info.round);
  round_.wants_clients = cohort.empty();
  for (const auto client : cohort)
    begin_work(client, activity_id::round);
  if (!cohort.empty())
    for (std::size_t kind = 0; kind < activities.size(); ++kind)
      for (const auto client : pool_.draw_observers(activities[kind], round_.info.round))
        begin_work(client, static_cast<activity_id>(kind));
  return round_.missing > 0 || (round_.wants_clients && !cannot_progress());
}

bool dispatcher::cannot_progress() const {
  return round_.wants_clients && in_flight_.size() == 0 && !pool_.clients_may_come();
}

void dispatcher::dispatch_idle() {
  const auto places = settings_.rounds.concurrency - static_cast<std::int64_t>(in_flight_.size());
  for (const auto client : pool_.draw_idle(places, next_assignment_))
    begin_work(client, activity_id::round);
  round_.wants_clients = places > 0 && in_flight_.size() == 0;
}

/// A client outside the cohort never drops out, since no round waits for it.
void dispatcher::begin_work(client_id client, activity_id kind) {
  const auto& activity_row = row_of(kind);
  const auto visit = pool_.begin_visit(client);
  auto bytes = round_.opened.bytes + (visit == 0 ? round_.opened.initial_payload_bytes : 0);
  assignment_in_flight added;
  added.activity_kind = kind;
  added.visit = visit;
  added.horizon = clock_.now();
  if (activity_row.is_free(settings_)) {
    bytes = 0;
  } else {
    out_.report().download_bytes += bytes;
    for (const auto from : settings_.other_parties)
      out_.report().*row_of(from).bytes_from += round_.last_advice[index_of(from)].bytes;
    added.horizon += download_time({.client = client, .bytes = bytes, .begins = clock_.now(), .visit = visit});
  }
  out_.record("scheduler", activity_row.begins_event, client, bytes);

  added.id = {next_assignment_++};
  added.client = client;
  added.drops_out = activity_row.uploads() && settings_.clients->drops_out(client, round_.info.task, visit);
  if (added.drops_out && !settings_.is_async()) { // no result of its jobs is needed, so nothing runs
    ++out_.report().dropped;
    round_.dropped_out.push_back(client);
    return out_.record("client", "drop_out", client);
  }
  if (activity_row.uploads()) {
    added.upload_size_known = settings_.upload_size_known;
    added.upload_bytes() = round_.known_upload_bytes(settings_);
  }
  const bool is_shared = links_.share(link_direction::down) && !activity_row.is_free(settings_);
  start_work(std::move(added), is_shared ? std::optional(bytes) : std::nullopt);
}

/// Virtual time until the client has received the broadcast and the advice of all other parties.
virtual_duration dispatcher::download_time(const transfer& sent) const {
  const auto& devices = settings_.clients->devices();
  auto time = devices.download_time(sent);
  for (const auto from : settings_.other_parties)
    if (const auto& [advice, advice_bytes] = round_.last_advice[index_of(from)]; advice)
      time = std::max(time, (devices.*row_of(from).download_time)(
                                {.client = sent.client, .bytes = advice_bytes, .begins = sent.begins}));
  return time;
}

/// Starts an assignment and schedules its first event, the end of its download. On a shared link, server_links
/// schedules this event.
void dispatcher::start_work(assignment_in_flight&& added, std::optional<std::int64_t> shared_bytes) {
  const auto client = added.client;
  added.round = round_.info.round;
  added.task = settings_.rows->central() ? round_.info.task : pool_.task_of(client);
  added.in = round_.broadcast_in(added.task, settings_);
  auto& owner = in_flight_.add(std::move(added));
  start(owner);
  pool_.assigned(client, owner.id);
  if (shared_bytes)
    links_.begin(link_direction::down, owner, *shared_bytes);
  else
    clock_.expect(owner, federation_event::kind::stage_over, owner.horizon);
  ++round_.missing;
}

void dispatcher::start(const assignment_in_flight& owner) {
  waves_.start({.id = owner.id,
                .client = owner.client,
                .in = owner.in,
                .memory = memories_.find(owner.client),
                .samples = {},
                .seed = settings_.seed,
                .visit = pool_.visit_of(owner.client),
                .task = owner.task,
                .observes = row_of(owner.activity_kind).observes},
               owner.horizon);
}

// -- end of work ------------------------------------------------------------------------------------------------------

/// Commits the client's new memory; this happens at the delivery, never earlier.
void dispatcher::end(assignment_in_flight& owner) {
  if (const auto* const counts = owner.result.counts.get())
    out_.log().counted(*counts);
  if (owner.result.memory)
    memories_.put(owner.client, std::move(owner.result.memory));
  pool_.end_visit(owner.client);
  in_flight_.erase(owner.id);
}

void dispatcher::abandon(const std::vector<assignment_id>& ids, const char* reason) {
  if (ids.empty())
    return;
  for (const auto id : ids) {
    const auto client = in_flight_.at(id).client;
    out_.record("client", reason, client);
    pool_.end_visit(client);
  }
  if (settings_.clients->devices().shares_links())
    links_.abandon(ids);
  waves_.abandon(ids);
}

/// An arrival exactly at the deadline is in time, because a deadline leaves the queue after all other events at the
/// same time.
void dispatcher::deadline_passed() {
  out_.record("scheduler", "deadline");
  std::vector<assignment_id> late;
  for (const auto id : in_flight_.ids()) {
    const auto& owner = in_flight_.at(id);
    if (owner.round != round_.info.round)
      continue;
    out_.report().late_uploads += owner.uploads() ? 1 : 0;
    if (settings_.drops_late())
      late.push_back(id);
    else
      out_.record("client", "late", owner.client);
  }
  abandon(late, "late");
}

void dispatcher::free_dropped_out() {
  for (const auto client : round_.dropped_out)
    pool_.end_visit(client);
  round_.dropped_out.clear();
}

// -- churn ------------------------------------------------------------------------------------------------------------

void dispatcher::apply_churn() {
  clock_.record_churn();
  for (const auto& change : pool_.move_to(clock_.now()))
    apply(change);
  out_.report().enrolled_max = std::max(out_.report().enrolled_max, pool_.enrolled());
  clock_.schedule_churn(pool_.next_change());
}

void dispatcher::apply(const availability_change& change) {
  using kind = availability_change::kind;
  if (change.change_kind == kind::joined) {
    ++out_.report().joined;
    out_.record("client", "enrol", change.client);
  } else if (change.change_kind == kind::left) {
    leave(change.client);
  } else if (change.change_kind == kind::entered_task) {
    ++out_.report().transitions;
    out_.record("client", "task", change.client);
    const auto& clients = *settings_.clients;
    if (clients.member(change.client, change.task) == membership::left &&
        clients.member(change.client, {change.task.value - 1}) != membership::left)
      leave(change.client);
  }
  pool_.changed(change.client);
}

/// Cancels the client's work. Deletes the client's memory if clients rejoin without memory.
void dispatcher::leave(client_id client) {
  ++out_.report().left;
  if (const auto id = pool_.assignment_of(client)) {
    if (in_flight_.at(*id).round == round_.info.round && !settings_.is_async())
      --round_.missing;
    abandon({*id}, "left");
  } else {
    out_.record("client", "left", client);
  }
  if (settings_.rejoin == rejoin_policy::without_memory)
    memories_.erase(client);
}

// -- saved state ------------------------------------------------------------------------------------------------------

void dispatcher::persist(archive& state) {
  state(next_assignment_);
  state.section("clients")(pool_);
  persist_memories(state);
}

void dispatcher::persist_memories(archive& state) {
  std::uint64_t count = memories_.size();
  state.section("memories")(count);
  if (!state.loading())
    memories_.each([&](client_id client, memory_ref memory) { state(client)(memory); });
  for (std::uint64_t i = 0; state.loading() && i < count; ++i) {
    client_id client;
    memory_ref memory;
    state(client)(memory);
    if (client.value >= settings_.clients->size())
      throw archive_error("holds memory for client " + std::to_string(client.value) +
                          ", but the run has clients 0 to " + std::to_string(settings_.clients->size() - 1));
    memories_.put(client, std::move(memory));
  }
}

} // namespace mneme
