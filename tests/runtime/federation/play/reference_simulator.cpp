#include "tests/runtime/federation/play/reference_simulator.hpp"
#include "runtime/population/cohort.hpp"
#include "runtime/population/staleness.hpp"
#include <algorithm>
#include <cmath>
#include <set>
namespace mneme::test {
namespace {

enum class change : std::uint32_t { joined, left, reachable, unreachable, entered_task };

struct toy_client {
  std::uint32_t visits = 0, stays = 0;
  bool busy = false, enrolled = false, has_left = false, reachable = true;
  std::uint64_t memory = 0;
  task_id task{};
  std::set<std::tuple<virtual_time, change, std::uint32_t>> changes{}; // that will come; the task of entered_task
};

struct toy_flight {
  toy_assignment given{};
  round_id round{};
  bool drops_out = false;
  std::size_t stage = 0;
  std::vector<virtual_duration> stages{};
};

enum class happening : std::uint8_t { stage_over, arrival, drop_out, deadline };
struct toy_event {
  virtual_time at{};
  bool is_deadline = false; // which leave after all else of their time
  std::uint64_t sequence = 0;
  happening kind{};
  std::uint64_t number = 0; // of the assignment, or of the deadline's round
  auto operator<=>(const toy_event&) const = default;
};

class simulator {
public:
  explicit simulator(const toy_federation& toy) : toy_(toy), clients_(static_cast<std::size_t>(people_.size())) {}
  std::optional<run_outcome> run();

private:
  void note(const char* event, std::optional<client_id> who = {}, std::int64_t bytes = 0,
            const char* actor = "client") {
    out_.events.push_back({now_, who || actor != std::string("client") ? actor : "scheduler", event, who, place_.task,
                           place_.round, bytes});
  }
  void push(virtual_duration wait, happening kind, std::uint64_t number) {
    events_.insert({now_ + wait, kind == happening::deadline, sequence_++, kind, number});
  }
  void plan_first_changes();
  void open_task(task_id task);
  void run_round();
  void draw_clients();
  void dispatch(client_id who);
  bool can_work(std::uint32_t c) const;
  bool has_rows(std::uint32_t c) const { return plan_.clients_without_rows || rows_.size({c}, clients_[c].task) > 0; }
  membership member(std::uint32_t c) const;
  bool may_take_part(std::uint32_t c) const {
    if (people_.comes_and_goes())
      return !clients_[c].has_left || people_.absence({c}, 0);
    return member(c) == membership::active || clients_[c].task < place_.task;
  }
  virtual_time next_change() const;
  bool somebody_may_come() const;
  void step();
  void change_clients();
  void make(client_id who, change what, std::uint32_t task);
  void leave(client_id who);
  void work_on(std::uint64_t id, toy_flight& flight);
  void arrive(std::uint64_t id, toy_flight& flight);
  void lose(std::uint64_t id, const char* why);
  void pass_deadline();
  void evaluate();

  const toy_federation& toy_;
  const federation_settings& rules_ = toy_.settings;
  const population& people_ = *rules_.clients;
  const client_rows& rows_ = *rules_.rows;
  toy_server server_;
  run_outcome out_;
  run_digest digest_;
  std::vector<toy_client> clients_;
  std::map<std::uint64_t, toy_flight> flights_;
  std::set<toy_event> events_;
  virtual_time now_{};
  std::uint64_t sequence_ = 0, next_id_ = 0;
  round_place place_;
  task_plan plan_;
  bool open_ = false, wants_ = false, ambiguous_ = false;
  std::int64_t missing_ = 0, folded_ = 0;
  std::vector<client_id> gone_; // dropped out of the open round
};

std::optional<run_outcome> simulator::run() {
  plan_first_changes();
  for (std::uint32_t t = 0; t < rules_.tasks.size(); ++t) {
    open_task({t});
    for (place_.round_of_task = 0; place_.round_of_task < place_.rounds_of_task; ++place_.round_of_task) {
      run_round();
      ++place_.round.value;
    }
  }
  --place_.round.value;
  while (!flights_.empty())
    lose(flights_.begin()->first, "abandoned");
  note("end");
  out_.report.ended = now_;
  out_.report.digest = digest_.value();
  return ambiguous_ ? std::nullopt : std::optional(std::move(out_));
}

// -- tasks and rounds -------------------------------------------------------------------------------------------------

void simulator::open_task(task_id task) {
  place_.task = task;
  note("task");
  for (std::uint32_t c = 0; c < clients_.size(); ++c)
    if (!people_.changes_task_one_by_one() || task.value == 0)
      clients_[c].task = task;
    else
      clients_[c].changes.insert({now_ + people_.transition_delay({c}, task), change::entered_task, task.value});
  std::vector<std::uint64_t> left;
  for (const auto& [id, flight] : flights_)
    if (member(flight.given.client.value) == membership::left)
      left.push_back(id);
  for (const auto id : left)
    lose(id, "left");
  change_clients();
  plan_ = toy_.plans[task.value];
  place_.rounds_of_task = plan_.rounds.value_or(rules_.rounds.per_task);
}

/// A synchronous round closes when its own cohort is through, or at its deadline; an asynchronous one when the buffer
/// is full. Where nobody is at work and nobody can come, it closes as it is.
void simulator::run_round() {
  note("open_round");
  open_ = true;
  missing_ = folded_ = 0;
  if (!rules_.is_async() && rules_.rounds.deadline.count() > 0)
    push(rules_.rounds.deadline, happening::deadline, place_.round.value);
  draw_clients();
  while (open_) {
    if (wants_ && flights_.empty() && !somebody_may_come())
      open_ = false;
    else
      step();
  }
  for (const auto who : gone_)
    clients_[who.value].busy = false;
  gone_.clear();
  wants_ = false;
  note("close_round");
  ++out_.report.rounds;
  if (folded_ > 0) { // an empty round leaves the model as it is
    digest_.add(server_.step());
    out_.models.push_back(server_.model);
  }
  const auto every = rules_.evaluation.every;
  if (place_.round_of_task + 1 == place_.rounds_of_task || (every > 0 && (place_.round.value + 1) % every == 0))
    evaluate();
}

void simulator::evaluate() {
  const bool all = rules_.evaluation.mask == evaluation_mask::all;
  const auto sums =
      server_.evaluate(place_.task, all ? class_range{0, rules_.classes} : rules_.tasks[place_.task.value].opened);
  std::int64_t rows = 0, correct = 0;
  double loss = 0.0;
  std::vector<double> each;
  for (const auto& task : sums.per_task) {
    rows += task.rows, correct += task.correct, loss += task.loss_sum;
    each.push_back(task.rows ? 100.0 * static_cast<double>(task.correct) / static_cast<double>(task.rows) : 0.0);
  }
  const auto accuracy = rows ? 100.0 * static_cast<double>(correct) / static_cast<double>(rows) : 0.0;
  loss = rows ? loss / static_cast<double>(rows) : 0.0;
  digest_.add(accuracy);
  for (const auto value : each)
    digest_.add(value);
  digest_.add(loss);
  note("evaluate", {}, 0, "server");
  out_.evaluations.push_back(
      {.task = place_.task, .round = place_.round, .at = now_, .accuracy = accuracy, .loss = loss});
}

// -- who works --------------------------------------------------------------------------------------------------------

membership simulator::member(std::uint32_t c) const {
  if (!people_.comes_and_goes())
    return people_.member({c}, clients_[c].task);
  return clients_[c].enrolled ? membership::active : clients_[c].has_left ? membership::left : membership::not_yet;
}

bool simulator::can_work(std::uint32_t c) const {
  const auto& client = clients_[c];
  if (rows_.central())
    return !client.busy && rows_.size({c}, place_.task) > 0;
  return !client.busy && client.reachable && member(c) == membership::active && has_rows(c);
}

/// Free places are filled at once; a synchronous round draws its cohort once somebody is there.
void simulator::draw_clients() {
  std::vector<client_id> drawn, idle;
  for (std::uint32_t c = 0; c < clients_.size(); ++c)
    if (can_work(c))
      idle.push_back({c});
  if (rules_.is_async()) {
    const auto places = rules_.rounds.concurrency - std::ssize(flights_);
    rng_stream stream(key_for({.seed = rules_.seed, .index = next_id_}, purpose::cohort));
    while (std::ssize(drawn) < places && !idle.empty()) {
      const auto rank = static_cast<std::ptrdiff_t>(stream.below(idle.size()));
      drawn.push_back(idle[static_cast<std::size_t>(rank)]);
      idle.erase(idle.begin() + rank);
    }
    std::sort(drawn.begin(), drawn.end());
  } else {
    const bool everybody = plan_.everybody || rules_.rounds.cohort == 0;
    const rng_key key{.seed = rules_.seed, .task = place_.task, .index = place_.round.value};
    drawn = rows_.central() ? draw_cohort({}, 1, 1, [&](client_id who) { return can_work(who.value); })
                            : draw_cohort(key_for(key, purpose::cohort), people_.size(),
                                          everybody ? people_.size() : rules_.rounds.cohort,
                                          [&](client_id who) { return can_work(who.value); });
  }
  for (const auto who : drawn)
    dispatch(who);
  wants_ = rules_.is_async() ? flights_.empty() : drawn.empty();
  if (!rules_.is_async() && !wants_ && missing_ == 0) // all of them dropped out
    open_ = false;
}

void simulator::dispatch(client_id who) {
  auto& client = clients_[who.value];
  const auto visit = client.visits++;
  const auto bytes = toy_.broadcast_bytes + (visit == 0 ? toy_.once_bytes : 0);
  const auto id = next_id_++;
  client.busy = true;
  out_.report.download_bytes += bytes;
  note("dispatch", who, bytes, "scheduler");
  const bool drops_out = people_.drops_out(who, place_.task, visit);
  if (drops_out && !rules_.is_async()) {
    ++out_.report.dropped;
    gone_.push_back(who);
    return note("drop_out", who);
  }
  const auto task = rows_.central() ? place_.task : client.task;
  toy_flight flight{
      .given = {who, task, visit, server_.model, client.memory}, .round = place_.round, .drops_out = drops_out};
  flight.stages = toy_.durations_of(flight.given);
  flights_[id] = flight;
  ++missing_;
  push(people_.download_time(who, bytes), happening::stage_over, id);
}

// -- what happens -----------------------------------------------------------------------------------------------------

void simulator::step() {
  const auto coming = next_change();
  if (events_.empty() && coming == never) {
    open_ = false;
    return;
  }
  if (events_.empty() || coming < events_.begin()->at) {
    now_ = coming;
    change_clients();
    if (rules_.is_async() || wants_)
      return draw_clients();
    open_ = missing_ > 0;
    return;
  }
  const auto event = *events_.begin();
  events_.erase(events_.begin());
  ambiguous_ = ambiguous_ || coming == event.at;
  now_ = event.at;
  if (event.kind == happening::deadline)
    return event.number == place_.round.value ? pass_deadline() : void();
  const auto found = flights_.find(event.number);
  if (found == flights_.end())
    return;
  if (event.kind == happening::stage_over)
    return work_on(event.number, found->second);
  if (event.kind == happening::arrival)
    return arrive(event.number, found->second);
  ++out_.report.dropped;
  lose(event.number, "drop_out");
  draw_clients();
}

void simulator::work_on(std::uint64_t id, toy_flight& flight) {
  const auto who = flight.given.client;
  if (flight.drops_out) {
    note("start", who);
    const auto stage = flight.stages.empty() ? virtual_duration{0} : flight.stages[0];
    const double part = people_.vanishing_point(who, flight.given.visit) * static_cast<double>(stage.count());
    return push(virtual_duration(static_cast<std::int64_t>(std::ceil(part))), happening::drop_out, id);
  }
  if (flight.stage < flight.stages.size()) {
    note(flight.stage == 0 ? "start" : "next_stage", who);
    return push(flight.stages[flight.stage++], happening::stage_over, id);
  }
  const auto bytes = toy_.result_of(flight.given).upload_bytes;
  note("upload", who, bytes);
  push(people_.upload_time(who, bytes), happening::arrival, id);
}

void simulator::arrive(std::uint64_t id, toy_flight& flight) {
  const auto who = flight.given.client;
  const auto result = toy_.result_of(flight.given);
  const std::int64_t staleness = rules_.is_async() ? place_.round.value - flight.round.value : 0;
  note("deliver", who, result.upload_bytes, "server");
  for (const auto item : {now_.time_since_epoch().count(), std::int64_t{who.value}, std::int64_t{flight.round.value},
                          result.rows, result.upload_bytes})
    digest_.add(static_cast<std::int64_t>(item));
  out_.report.upload_bytes += result.upload_bytes;
  ++out_.report.client_rounds;
  out_.report.staleness_sum += staleness;
  out_.report.staleness_max = std::max(out_.report.staleness_max, staleness);
  delivery upload{.from = who, .started_from = flight.round, .rows = result.rows, .staleness = staleness};
  if (rules_.is_async())
    upload.staleness_weight = staleness_weight(rules_.rounds, staleness);
  server_.fold(upload, result.upload);
  ++folded_;
  if (result.memory)
    clients_[who.value].memory = *result.memory;
  clients_[who.value].busy = false;
  const bool of_this_round = flight.round == place_.round;
  flights_.erase(id);
  if (rules_.is_async()) {
    open_ = folded_ < (rules_.rounds.aggregation == aggregation_kind::fedasync ? 1 : rules_.rounds.buffer);
    return open_ ? draw_clients() : void();
  }
  missing_ -= of_this_round;
  if (of_this_round && missing_ == 0)
    open_ = false;
  else if (wants_)
    draw_clients();
}

/// The work is lost, and the client is free.
void simulator::lose(std::uint64_t id, const char* why) {
  const auto who = flights_.at(id).given.client;
  note(why, who);
  clients_[who.value].busy = false;
  flights_.erase(id);
}

void simulator::pass_deadline() {
  note("deadline");
  std::vector<std::uint64_t> late;
  for (const auto& [id, flight] : flights_)
    if (flight.round == place_.round)
      late.push_back(id);
  out_.report.late_uploads += std::ssize(late);
  for (const auto id : late)
    if (rules_.rounds.late == late_policy::drop)
      lose(id, "late");
    else
      note("late", flights_.at(id).given.client);
  open_ = false;
}

// -- clients that come, go, or change task ----------------------------------------------------------------------------

void simulator::plan_first_changes() {
  for (std::uint32_t c = 0; c < clients_.size(); ++c) {
    if (people_.comes_and_goes())
      clients_[c].changes.insert({virtual_time{people_.arrival({c})}, change::joined, 0});
    if (!people_.is_ever_out_of_reach())
      continue;
    const auto window = people_.reach({c}, {});
    clients_[c].reachable = window.within;
    clients_[c].changes.insert({window.until, window.within ? change::unreachable : change::reachable, 0});
  }
}

virtual_time simulator::next_change() const {
  auto next = never;
  for (const auto& client : clients_)
    if (!client.changes.empty())
      next = std::min(next, std::get<0>(*client.changes.begin()));
  return next;
}

/// Changes that come for ever bring somebody only if somebody who is not gone for good has rows.
bool simulator::somebody_may_come() const {
  if (next_change() == never || !people_.goes_on_for_ever())
    return next_change() != never;
  for (std::uint32_t c = 0; c < clients_.size(); ++c)
    if (has_rows(c) && may_take_part(c))
      return true;
  return false;
}

/// Makes the changes that are due, by time, client and kind.
void simulator::change_clients() {
  for (;;) {
    std::optional<std::tuple<virtual_time, std::uint32_t, change, std::uint32_t>> first;
    for (std::uint32_t c = 0; c < clients_.size(); ++c)
      if (!clients_[c].changes.empty()) {
        const auto [at, what, task] = *clients_[c].changes.begin();
        if (at <= now_ && (!first || std::tuple{at, c, what, task} < *first))
          first = {at, c, what, task};
      }
    if (!first)
      break;
    const auto [at, c, what, task] = *first;
    clients_[c].changes.erase(clients_[c].changes.begin());
    make({c}, what, task);
  }
  std::int64_t enrolled = people_.enrolled(place_.task);
  if (people_.comes_and_goes())
    enrolled = std::count_if(clients_.begin(), clients_.end(), [](const auto& client) { return client.enrolled; });
  out_.report.enrolled_max = std::max(out_.report.enrolled_max, enrolled);
}

void simulator::make(client_id who, change what, std::uint32_t task) {
  auto& client = clients_[who.value];
  if (what == change::joined) {
    client.enrolled = true;
    client.has_left = false;
    ++out_.report.joined;
    client.changes.insert({now_ + people_.stay(who, client.stays), change::left, 0});
    return note("enrol", who);
  }
  if (what == change::left) {
    client.enrolled = false;
    client.has_left = true;
    if (const auto absence = people_.absence(who, client.stays++))
      client.changes.insert({now_ + *absence, change::joined, 0});
    return leave(who);
  }
  if (what == change::entered_task) {
    if (task <= client.task.value) // a later task was entered first
      return;
    client.task = {task};
    ++out_.report.transitions;
    note("task", who);
    const bool was_left = people_.member(who, {task - 1}) == membership::left;
    return people_.member(who, {task}) == membership::left && !was_left ? leave(who) : void();
  }
  const auto window = people_.reach(who, now_);
  client.reachable = window.within;
  client.changes.insert({window.until, window.within ? change::unreachable : change::reachable, 0});
}

void simulator::leave(client_id who) {
  ++out_.report.left;
  const auto at_work = std::find_if(flights_.begin(), flights_.end(),
                                    [&](const auto& flight) { return flight.second.given.client == who; });
  if (at_work == flights_.end())
    note("left", who);
  else {
    missing_ -= !rules_.is_async() && at_work->second.round == place_.round;
    lose(at_work->first, "left");
  }
  if (rules_.rejoin == rejoining::without_memory)
    clients_[who.value].memory = 0;
}

} // namespace

std::optional<run_outcome> simulated(const toy_federation& toy) { return simulator(toy).run(); }

} // namespace mneme::test
