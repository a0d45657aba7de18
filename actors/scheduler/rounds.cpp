// The scheduler's rounds: tasks begin, cohorts are drawn, uploads are delivered in virtual order, rounds close.
#include "actors/scheduler/scheduler.hpp"
#include "actors/scheduler/scheduler_ask.hpp"
#include "runtime/method/wire.hpp"
#include "runtime/population/cohort.hpp"
#include <algorithm>
namespace mneme {
namespace {

// Uploads that wait for the server before it is sent a bundle: so many, or so many bytes, still in a cache.
constexpr std::size_t deliveries_held_max = 32;
constexpr std::int64_t deliveries_bytes_max = std::int64_t{1} << 19;
constexpr std::int64_t unfolded_bytes_max = std::int64_t{64} << 20; // with as much, until it has folded them

} // namespace

// -- a task begins
// ------------------------------------------------------------------------------------------------------

void scheduler_state::begin_task(task_id which) {
  const auto& tasks = *world_->tasks;
  place_.task = which;
  place_.opened = tasks.opened(which);
  place_.current = tasks.tasks[which.value].classes;
  place_.round_of_task = 0;
  record("scheduler", "task", {});
  presence_.open_task(which, queue_.now());
  std::vector<assignment_id> left;
  for (const auto id : flights_.ids())
    if (presence_.member(flights_.at(id).client) == membership::left)
      left.push_back(id);
  abandon_flights(left, "left");
  keep_up();
  ask_server<task_plan>(open_task{place_}, [this](task_plan plan) {
    plan_ = plan;
    warn_of_own_rounds();
    place_.rounds_of_task = plan.rounds.value_or(world_->what.rounds.per_task);
    list_idle();
    begin_round();
  });
}

void scheduler_state::warn_of_own_rounds() {
  const auto wanted = world_->what.rounds.per_task;
  if (plan_.rounds && *plan_.rounds != wanted && world_->what.given.contains("rounds.per_task"))
    tell_recorder(run_warning{world_->what.strategy.name + " sets its own rounds: " + std::to_string(*plan_.rounds) +
                              " in task " + std::to_string(place_.task.value + 1) +
                              ", not rounds.per_task = " + std::to_string(wanted)});
}

// -- a round opens
// ------------------------------------------------------------------------------------------------------

void scheduler_state::begin_round() {
  if (stopping_)
    return stop_at(next_step::round);
  ask_server<opened_round>(open_round{place_}, [this](opened_round opened) { open(std::move(opened)); });
}

void scheduler_state::open(opened_round opened) {
  broadcast_ = std::move(opened);
  older_tasks_.clear();
  round_open_ = true;
  folded_ = cohort_missing_ = 0;
  record("scheduler", "open_round", {});
  if (is_async()) {
    fill_places();
    return advance();
  }
  const auto deadline = world_->what.rounds.deadline;
  deadline_at_ = virtual_time::max();
  if (deadline.count() > 0) {
    deadline_at_ = queue_.now() + deadline;
    queue_.push(deadline_at_, {.what = event::kind::deadline, .flight = {}, .round = place_.round},
                precedence::deadline);
  }
  try_dispatch();
  advance();
}

/// Dispatches the cohort. With nobody available the round waits for clients at work to come back, or for others to
/// come; if there are none, it closes empty.
void scheduler_state::try_dispatch() {
  const auto chosen = cohort();
  wants_clients_ = chosen.empty();
  for (const auto who : chosen)
    dispatch(who);
  if (cohort_missing_ == 0 && (!wants_clients_ || (flights_.size() == 0 && !somebody_may_come())))
    close();
}

std::vector<client_id> scheduler_state::cohort() {
  const auto free = [this](client_id who) { return available(who); };
  const auto clients = world_->people->size();
  if (world_->rows->central())
    return draw_cohort({}, 1, 1, free);
  const auto stated = world_->what.rounds.cohort; // 0: all available
  const auto wanted = plan_.everybody || stated == 0 ? clients : stated;
  const rng_key key{
      .seed = static_cast<std::uint64_t>(world_->what.seed), .task = place_.task, .index = place_.round.value};
  return draw_cohort(key_for(key, purpose::cohort), clients, wanted, free);
}

bool scheduler_state::available(client_id who) const {
  if (clients_[who.value].busy)
    return false;
  if (world_->rows->central())
    return world_->rows->size(who, place_.task) > 0;
  return presence_.here(who) && (plan_.clients_without_rows || world_->rows->size(who, presence_.task_of(who)) > 0);
}

void scheduler_state::dispatch(client_id who) {
  auto& client = clients_[who.value];
  const std::uint32_t visit = client.visits++;
  const auto bytes = broadcast_.bytes + (visit == 0 ? broadcast_.once_bytes : 0);
  report_.download_bytes += bytes;
  client.busy = 1;
  record("scheduler", "dispatch", who, bytes);
  const assignment_id id{next_assignment_++};
  const bool drops_out = world_->people->drops_out(who, place_.task, visit);
  if (drops_out && !is_async()) {
    ++report_.dropped;
    dropped_out_.push_back(who);
    record("client", "drop_out", who);
    return;
  }
  const auto ready = queue_.now() + world_->people->download_time(who, bytes);
  flight one;
  one.id = id;
  one.client = who;
  one.round = place_.round;
  one.in = broadcast_in(presence_.task_of(who));
  one.vanishes = drops_out;
  one.horizon = ready;
  one.foretold = world_->method->foretells_uploads();
  one.upload_bytes = foretold_bytes(one.in->weights);
  depart(flights_.add(std::move(one)));
  if (may_leave_at_work())
    at_work_[who] = id;
  queue_.push(ready, {.what = event::kind::progress, .flight = id, .round = place_.round});
  ++cohort_missing_;
}

/// It is started when virtual time first needs anything. What it is given holds from the dispatch to the delivery:
/// nothing changes a busy client's memory or visits.
void scheduler_state::depart(const flight& one) {
  to_start_.add({.id = one.id,
                 .client = one.client,
                 .in = one.in,
                 .memory = remembered(one.client),
                 .samples = {},
                 .seed = static_cast<std::uint64_t>(world_->what.seed),
                 .visit = static_cast<std::uint32_t>(clients_[one.client.value].visits) - 1},
                one.horizon);
}

/// What the round's clients receive who are in `which`.
broadcast_ref scheduler_state::broadcast_in(task_id which) {
  if (which == place_.task || world_->rows->central())
    return broadcast_.in;
  older_tasks_.resize(place_.task.value);
  auto& made = older_tasks_.at(which.value);
  if (!made) {
    auto changed = *broadcast_.in;
    changed.place.task = which;
    changed.place.current = world_->tasks->tasks[which.value].classes;
    made = std::make_shared<const broadcast>(std::move(changed));
  }
  return made;
}

/// Of an upload that is like the broadcast `weights`; 0 where none can be foretold.
std::int64_t scheduler_state::foretold_bytes(const tensors_ref& weights) {
  if (!world_->method->foretells_uploads())
    return 0;
  if (foretold_.first != weights)
    foretold_ = {weights, wire_bytes(weights.get(), world_->what.devices.wire)};
  return foretold_.second;
}

/// The client has nothing to do any more.
void scheduler_state::free(client_id who) {
  clients_[who.value].busy = 0;
  if (may_leave_at_work())
    at_work_.erase(who);
  if (is_async())
    idle_.put(who, available(who));
}

// -- clients at work
// ----------------------------------------------------------------------------------------------------

/// A download or a stage is over: the next stage's time runs, or the upload is on its way.
void scheduler_state::progress_of(flight& one) {
  if (one.vanishes)
    return begin_to_vanish(one);
  if (one.stages_reached < one.stages.size()) {
    record("client", one.stages_reached == 0 ? "start" : "next_stage", one.client);
    const auto duration = one.stages[one.stages_reached++];
    queue_.push(queue_.now() + duration, {.what = event::kind::progress, .flight = one.id, .round = one.round});
    return;
  }
  record("client", "upload", one.client, one.upload_bytes);
  const auto duration = world_->people->upload_time(one.client, one.upload_bytes);
  queue_.push(queue_.now() + duration, {.what = event::kind::arrival, .flight = one.id, .round = one.round});
}

void scheduler_state::deliver(flight& one) {
  auto result = std::move(*one.result);
  result_bytes_ -= one.upload_bytes;
  wave_delivered_bytes_ += reports_missing_ > 0 ? one.upload_bytes : 0;
  record("server", "deliver", one.client, one.upload_bytes);
  digest_.add(static_cast<std::int64_t>(queue_.now().time_since_epoch().count()));
  digest_.add(std::uint64_t{one.client.value});
  digest_.add(std::uint64_t{one.round.value});
  digest_.add(result.rows);
  digest_.add(one.upload_bytes);
  if (world_->trace && result.upload)
    trace_.add(digest_of(*result.upload));
  report_.upload_bytes += one.upload_bytes;
  ++report_.client_rounds;
  ++folded_;
  if (result.memory)
    remember(one.client, std::move(result.memory));
  if (over_) // what it remembers could not be kept
    return;
  free(one.client);
  waiting_deliveries_.push_back(delivery_of(one, std::move(result)));
  report_.staleness_sum += waiting_deliveries_.back().staleness;
  report_.staleness_max = std::max(report_.staleness_max, waiting_deliveries_.back().staleness);
  const bool of_this_round = one.round == place_.round;
  const auto upload_bytes = one.upload_bytes;
  flights_.erase(one.id);
  waiting_bytes_ += upload_bytes;
  if (waiting_deliveries_.size() >= deliveries_held_max || waiting_bytes_ >= deliveries_bytes_max)
    hand_over_deliveries();
  if (is_async())
    return folded_ == uploads_of_step() ? close() : fill_places();
  if (of_this_round && --cohort_missing_ == 0)
    return close();
  if (wants_clients_)
    try_dispatch();
}

/// Large uploads are folded before virtual time goes on: what waits for the server is memory too.
void scheduler_state::hand_over_deliveries() {
  if (waiting_deliveries_.empty())
    return;
  deliveries bundle{std::exchange(waiting_deliveries_, {})};
  unfolded_bytes_ += std::exchange(waiting_bytes_, 0);
  if (unfolded_bytes_ < unfolded_bytes_max)
    return tell_server(std::move(bundle));
  unfolded_bytes_ = 0;
  ++folds_missing_;
  self_->request(peers_.server, caf::infinite, std::move(bundle))
      .then(
          [this] {
            --folds_missing_;
            advance();
          },
          [this](const caf::error& why) { finish(run_status::failed, in_words(why)); });
}

/// An arrival at exactly the deadline is in time: deadlines leave the queue last.
void scheduler_state::deadline_passed() {
  record("scheduler", "deadline", {});
  const bool drops = world_->what.rounds.late == late_policy::drop;
  std::vector<assignment_id> late;
  for (const auto id : flights_.ids()) {
    auto& one = flights_.at(id);
    if (one.round != place_.round)
      continue;
    ++report_.late_uploads;
    one.late = true;
    if (drops)
      late.push_back(id);
    else
      record("client", "late", one.client);
  }
  abandon_flights(late, "late");
  close();
}

void scheduler_state::abandon_flights(const std::vector<assignment_id>& which, const char* why) {
  std::vector<abandon> told(peers_.shards.size());
  for (const auto id : which) {
    auto& one = flights_.at(id);
    record("client", why, one.client);
    free(one.client);
    if (one.result)
      result_bytes_ -= one.upload_bytes;
    else if (one.started && !one.given_up)
      told[shard_of(one.client, told.size()).value].all.push_back(id);
    flights_.erase(id);
  }
  if (!which.empty())
    to_start_.erase(which);
  for (std::size_t i = 0; i < told.size(); ++i)
    if (!told[i].all.empty())
      self_->send(peers_.shards[i], std::move(told[i]));
}

// -- a round closes
// -----------------------------------------------------------------------------------------------------

void scheduler_state::close() {
  round_open_ = wants_clients_ = false;
  for (const auto who : dropped_out_)
    clients_[who.value].busy = 0;
  dropped_out_.clear();
  hand_over_deliveries();
  record("scheduler", "close_round", {});
  ++report_.rounds;
  if (folded_ == 0) // an empty round leaves the model as it is
    return round_closed();
  ask_server<closed_round>(close_round{place_}, [this](closed_round step) {
    digest_.add(step.model);
    round_closed();
  });
}

void scheduler_state::round_closed() {
  const bool end_of_task = place_.round_of_task + 1 == place_.rounds_of_task;
  const auto every = world_->what.evaluation.every;
  tell_recorder(
      progress_snapshot{.task = place_.task,
                        .round = place_.round,
                        .tasks = std::ssize(world_->tasks->tasks),
                        .rounds = report_.rounds - 1 - place_.round_of_task +
                                  place_.rounds_of_task * (std::ssize(world_->tasks->tasks) - place_.task.value),
                        .at = queue_.now(),
                        .in_flight = static_cast<std::int64_t>(flights_.size()),
                        .client_rounds = report_.client_rounds});
  if (end_of_task || (every > 0 && (place_.round.value + 1) % every == 0))
    evaluate_round(end_of_task);
  else
    next_round();
}

void scheduler_state::evaluate_round(bool end_of_task) {
  const bool all = world_->what.evaluation.mask == evaluation_mask::all;
  const auto mask = all ? class_range{0, world_->tasks->classes} : place_.opened;
  ask_server<evaluated>(evaluate{.upto = place_.task, .mask = mask},
                        [this, end_of_task](evaluated result) { take(result, end_of_task); });
}

void scheduler_state::take(const evaluated& result, bool end_of_task) {
  evaluation_record line{.task = place_.task, .round = place_.round, .at = queue_.now()};
  std::int64_t rows = 0, correct = 0;
  for (const auto& one : result.per_task) {
    rows += one.rows;
    correct += one.correct;
    line.loss += one.loss_sum;
    line.accuracy_per_task.push_back(
        one.rows == 0 ? 0.0 : 100.0 * static_cast<double>(one.correct) / static_cast<double>(one.rows));
    line.rows_per_task.push_back(one.rows);
  }
  line.accuracy = rows == 0 ? 0.0 : 100.0 * static_cast<double>(correct) / static_cast<double>(rows);
  line.loss = rows == 0 ? 0.0 : line.loss / static_cast<double>(rows);
  line.upload_bytes = report_.upload_bytes;
  line.download_bytes = report_.download_bytes;
  line.clients_enrolled = presence_.enrolled();
  line.client_rounds = report_.client_rounds;
  line.late_uploads = report_.late_uploads;
  line.dropped = report_.dropped;
  line.end_of_task = end_of_task;
  digest_.add(line.accuracy);
  for (const auto value : line.accuracy_per_task)
    digest_.add(value);
  digest_.add(line.loss);
  record("server", "evaluate", {});
  tell_recorder(std::move(line));
  next_round();
}

void scheduler_state::next_round() {
  ++place_.round.value;
  if (++place_.round_of_task < place_.rounds_of_task)
    return checkpoint_then_go_on(next_step::round);
  if (place_.task.value + 1 < world_->tasks->tasks.size())
    return checkpoint_then_go_on(next_step::task);
  --place_.round.value;
  finish(run_status::done);
}

} // namespace mneme
