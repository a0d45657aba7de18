// The federation's rounds: tasks begin, clients are drawn and sent off, rounds close. An asynchronous round is what
// lies between two server steps.
#include "runtime/federation/federation.hpp"
namespace mneme {

// -- a task begins ----------------------------------------------------------------------------------------------------

void federation::begin_task(task_id task) {
  round_.open_task(task, settings_);
  record("scheduler", "task", {});
  pool_.open_task(task, queue_.now());

  // Enrolment may end with a task: whoever is no member any more leaves its work behind.
  std::vector<assignment_id> left;
  for (const auto id : in_flight_.ids())
    if (pool_.member(in_flight_.at(id).client) == membership::left)
      left.push_back(id);
  abandon_assignments(left, "left");
  keep_up();
  command(mneme::open_task{round_.place});
}

void federation::take(const task_plan& plan) {
  if (over_)
    return;
  warn_of_own_rounds(plan);
  round_.place.rounds_of_task = plan.rounds.value_or(settings_.rounds.per_task);
  pool_.plan_task(plan);
  begin_round();
}

void federation::warn_of_own_rounds(const task_plan& plan) {
  const auto stated = settings_.rounds.per_task;
  if (plan.rounds && *plan.rounds != stated && settings_.rounds_are_stated)
    command(run_warning{settings_.method + " sets its own rounds: " + std::to_string(*plan.rounds) + " in task " +
                        std::to_string(round_.place.task.value + 1) +
                        ", not rounds.per_task = " + std::to_string(stated)});
}

// -- a round opens ----------------------------------------------------------------------------------------------------

void federation::begin_round() {
  if (stopping_)
    return stop_at(next_step::round);
  command(open_round{round_.place});
}

void federation::take(opened_round& made) {
  if (over_)
    return;
  round_.open(std::move(made), advice_.advice);
  record("scheduler", "open_round", {});
  if (settings_.is_async()) {
    fill_places();
    return advance();
  }
  if (settings_.rounds.deadline.count() > 0) {
    round_.deadline = population::later_by(queue_.now(), settings_.rounds.deadline);
    queue_.push(round_.deadline, {.event_kind = federation_event::kind::deadline, .round = round_.place.round},
                precedence::deadline);
  }
  try_dispatch();
  advance();
}

/// Dispatches the cohort. With nobody available the round waits for clients at work to come back, or for others to
/// come; if there are none, it closes empty.
void federation::try_dispatch() {
  const auto chosen = pool_.draw_cohort(round_.place.round);
  round_.wants_clients = chosen.empty();
  for (const auto client : chosen)
    dispatch(client);
  if (!chosen.empty())
    for (const auto client : pool_.draw_observers(round_.place.round))
      observe(client);
  if (round_.missing == 0 && (!round_.wants_clients || (in_flight_.size() == 0 && !pool_.clients_may_come())))
    close();
}

/// Gives work to as many idle clients as there are places. What is left free is filled when a client becomes idle.
void federation::fill_places() {
  const auto places = settings_.rounds.concurrency - static_cast<std::int64_t>(in_flight_.size());
  for (const auto client : pool_.draw_idle(places, next_assignment_))
    dispatch(client);
  round_.wants_clients = places > 0 && in_flight_.size() == 0;
}

void federation::dispatch(client_id client) {
  const auto visit = pool_.begin_visit(client);
  const auto bytes = round_.opened.bytes + (visit == 0 ? round_.opened.first_contact_bytes : 0);
  log_.report().download_bytes += bytes;
  log_.report().proxy_bytes += advice_.advice_bytes;
  record("scheduler", "dispatch", client, bytes);

  const assignment_id id{next_assignment_++};
  const bool drops_out = settings_.clients->drops_out(client, round_.place.task, visit);
  if (drops_out && !settings_.is_async()) { // nothing runs
    ++log_.report().dropped;
    round_.dropped_out.push_back(client);
    return record("client", "drop_out", client);
  }

  assignment_in_flight added;
  added.id = id;
  added.client = client;
  added.drops_out = drops_out;
  added.horizon = queue_.now() + download_time(client, bytes);
  added.upload_size_known = settings_.upload_size_known;
  added.upload_bytes = round_.known_upload_bytes(settings_);
  start_work(std::move(added));
}

/// The client looks at its rows under the broadcast. It never drops out: nobody waits for an upload.
void federation::observe(client_id client) {
  const auto visit = pool_.begin_visit(client);
  auto bytes = round_.opened.bytes + (visit == 0 ? round_.opened.first_contact_bytes : 0);
  assignment_in_flight added;
  added.id = {next_assignment_++};
  added.client = client;
  added.looks = true;
  added.horizon = queue_.now();
  if (settings_.observing_costs) {
    log_.report().download_bytes += bytes;
    log_.report().proxy_bytes += advice_.advice_bytes;
    added.horizon += download_time(client, bytes);
  } else {
    bytes = 0;
  }
  record("scheduler", "observe", client, bytes);
  start_work(std::move(added));
}

/// Until a client has what the server sends, and what the proxy does.
virtual_duration federation::download_time(client_id client, std::int64_t bytes) const {
  const auto from_server = settings_.clients->download_time(client, bytes);
  if (!advice_.advice)
    return from_server;
  return std::max(from_server, settings_.clients->proxy_download_time(client, advice_.advice_bytes));
}

/// Its first event is the end of its download.
void federation::start_work(assignment_in_flight&& added) {
  const auto client = added.client;
  added.round = round_.place.round;
  added.task = settings_.rows->central() ? round_.place.task : pool_.task_of(client);
  added.in = round_.broadcast_in(added.task, settings_);
  auto& owner = in_flight_.add(std::move(added));
  queue_start(owner);
  pool_.assigned(client, owner.id);
  expect(owner, federation_event::kind::stage_over, owner.horizon);
  ++round_.missing;
}

/// It is started when virtual time first needs anything. What it is given holds from the dispatch to the delivery:
/// nothing changes a busy client's memory or visits.
void federation::queue_start(const assignment_in_flight& added) {
  start_queue_.add({.id = added.id,
                    .client = added.client,
                    .in = added.in,
                    .memory = remembered(added.client),
                    .samples = {},
                    .seed = settings_.seed,
                    .visit = pool_.visit_of(added.client),
                    .task = added.task,
                    .looks = added.looks},
                   added.horizon);
}

// -- a round closes ---------------------------------------------------------------------------------------------------

/// An arrival at exactly the deadline is in time: deadlines leave the queue last.
void federation::deadline_passed() {
  record("scheduler", "deadline", {});
  std::vector<assignment_id> late;
  for (const auto id : in_flight_.ids()) {
    const auto& owner = in_flight_.at(id);
    if (owner.round != round_.place.round)
      continue;
    log_.report().late_uploads += owner.looks ? 0 : 1;
    if (settings_.drops_late())
      late.push_back(id);
    else
      record("client", "late", owner.client);
  }
  abandon_assignments(late, "late");
  close();
}

void federation::close() {
  round_.is_open = round_.wants_clients = false;
  for (const auto client : round_.dropped_out)
    pool_.end_visit(client);
  round_.dropped_out.clear();
  hand_over_deliveries();
  record("scheduler", "close_round", {});
  ++log_.report().rounds;
  log_.closed();
  fruitless_events_ = 0;
  if (round_.folded == 0) // an empty round leaves the model as it is
    return round_closed();
  command(close_round{round_.place});
}

void federation::take(const closed_round& step) {
  if (over_)
    return;
  log_.stepped(step.model);
  if (settings_.has_proxy)
    return command(advise{.where = round_.place, .model = step.for_proxy});
  round_closed();
}

/// The proxy has looked at the model: what it says goes out with the next broadcasts.
void federation::take(const advised& step) {
  if (over_)
    return;
  advice_ = step;
  log_.advised(step);
  record("proxy", "advise", {}, step.advice_bytes);
  round_closed();
}

void federation::round_closed() {
  const auto& place = round_.place;
  const auto tasks = std::ssize(settings_.tasks);
  command(progress_snapshot{.task = place.task,
                            .round = place.round,
                            .tasks = tasks,
                            .rounds = log_.report().rounds - 1 - place.round_of_task +
                                      place.rounds_of_task * (tasks - place.task.value),
                            .at = queue_.now(),
                            .in_flight = static_cast<std::int64_t>(in_flight_.size()),
                            .client_rounds = log_.report().client_rounds,
                            .clients_enrolled = pool_.enrolled(),
                            .late_uploads = log_.report().late_uploads,
                            .dropped = log_.report().dropped,
                            .upload_bytes = log_.report().upload_bytes,
                            .download_bytes = log_.report().download_bytes,
                            .staleness_sum = log_.report().staleness_sum,
                            .jobs = log_.report().jobs,
                            .batches = log_.report().batches,
                            .training_loss = log_.step_losses().mean()});
  const auto every = settings_.evaluation.every;
  if (!round_.is_last_of_task() && (every == 0 || (place.round.value + 1) % every != 0))
    return next_round();
  command(evaluate{.masks = masks_of_evaluation(),
                   .end_of_task = round_.is_last_of_task(),
                   .with_model = round_.is_last_of_task() && settings_.evaluation.models == kept_models::tasks});
}

/// The classes among which rows of each task opened so far are told apart.
std::vector<class_range> federation::masks_of_evaluation() const {
  std::vector<class_range> masks;
  for (std::uint32_t t = 0; t <= round_.place.task.value; ++t)
    switch (settings_.evaluation.mask) {
    case evaluation_mask::seen:
      masks.push_back(round_.place.opened);
      break;
    case evaluation_mask::all:
      masks.push_back({0, settings_.classes});
      break;
    case evaluation_mask::task:
      masks.push_back(settings_.tasks.at(t).current);
      break;
    }
  return masks;
}

void federation::take(const evaluated& sums) {
  if (over_)
    return;
  auto line = log_.add_evaluation(sums);
  line.task = round_.place.task;
  line.round = round_.place.round;
  line.at = queue_.now();
  line.clients_enrolled = pool_.enrolled();
  line.end_of_task = round_.is_last_of_task();
  record("server", "evaluate", {});
  line.per_class = sums.per_class;
  if (sums.model)
    command(keep_model{.task = line.task, .model = sums.model});
  command(std::move(line));
  next_round();
}

void federation::next_round() {
  auto& place = round_.place;
  ++place.round.value;
  if (++place.round_of_task < place.rounds_of_task)
    return checkpoint_then_go_on(next_step::round);
  if (place.task.value + 1 < settings_.tasks.size())
    return checkpoint_then_go_on(next_step::task);
  --place.round.value; // events of the end belong to the last round
  finish(run_status::done);
}

} // namespace mneme
