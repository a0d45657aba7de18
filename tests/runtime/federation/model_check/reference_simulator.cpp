#include "tests/runtime/federation/model_check/reference_simulator.hpp"
#include "runtime/population/staleness.hpp"
#include "tests/runtime/federation/model_check/reference_clients.hpp"
#include <algorithm>
#include <cmath>
namespace mneme::test {
namespace {

/// Client with a running round.
struct toy_work {
  toy_assignment given{};
  round_id round{};
  bool drops_out = false;
  std::size_t stage = 0;
  std::vector<virtual_duration> stages{};
  virtual_time ended{}; // end of its last stage
};

enum class happening : std::uint8_t { stage_over, arrival, proxy_arrival, drop_out, deadline };
struct toy_event {
  virtual_time at{};
  bool is_deadline = false; // deadlines follow all other events at the same time
  std::uint64_t sequence = 0;
  happening kind{};
  std::uint64_t number = 0; // number of the assignment, or of the round of the deadline
  auto operator<=>(const toy_event&) const = default;
};

/// Thrown after more events than a finite run can have: clients change, but no upload is delivered.
struct dead_end {};

class simulator {
public:
  explicit simulator(const toy_federation& toy)
      : toy_(toy), clients_(rules_), memories_(static_cast<std::size_t>(population_.size())) {}

  std::optional<run_outcome> run() {
    for (std::uint32_t t = 0; t < rules_.tasks.size(); ++t) {
      open_task({t});
      for (info_.round_of_task = 0; info_.round_of_task < info_.rounds_of_task; ++info_.round_of_task) {
        run_round();
        ++info_.round.value;
      }
    }
    --info_.round.value;
    while (!works_.empty())
      lose(works_.begin()->first, "abandoned");
    note("scheduler", "end");
    out_.report.ended = now_;
    out_.report.digest = digest_.value();
    return ambiguous_ ? std::nullopt : std::optional(std::move(out_));
  }

private:
  void note(const char* actor, const char* event, std::optional<client_id> client = {}, std::int64_t bytes = 0) {
    out_.events.push_back({now_, actor, event, client, info_.task, info_.round, bytes});
  }
  void push(virtual_duration wait, happening kind, std::uint64_t number) {
    events_.insert({now_ + wait, kind == happening::deadline, sequence_++, kind, number});
  }

  // -- tasks and rounds

  void open_task(task_id task) {
    info_.task = task;
    note("scheduler", "task");
    clients_.open_task(task, now_);
    std::vector<std::uint64_t> left;
    for (const auto& [id, work] : works_)
      if (clients_.member(work.given.client) == membership::left)
        left.push_back(id);
    for (const auto id : left)
      lose(id, "left");
    change_clients();
    clients_.plan_task(toy_.plans[task.value]);
    info_.rounds_of_task = toy_.plans[task.value].rounds.value_or(rules_.rounds.per_task);
  }

  /// A synchronous round closes when its cohort has finished, or at the deadline. An asynchronous round closes when the
  /// buffer is full. If no client is active and none can come, it closes immediately.
  void run_round() {
    note("scheduler", "open_round");
    open_ = true;
    missing_ = folded_ = 0;
    loss_rows_ = loss_sum_ = 0.0;
    if (!rules_.is_async() && rules_.rounds.deadline.count() > 0)
      push(rules_.rounds.deadline, happening::deadline, info_.round.value);
    draw_clients();
    while (open_)
      if (wants_ && works_.empty() && !clients_.may_gain_client())
        close();
      else
        step();
    for (const auto client : dropped_out_)
      clients_.end_visit(client);
    dropped_out_.clear();
    wants_ = false;
    note("scheduler", "close_round");
    ++out_.report.rounds;
    if (folded_ > 0) { // an empty round does not change the model
      digest_.add(server_.step());
      out_.models.push_back(server_.model);
      if (!rules_.other_parties.empty()) {
        digest_.add(proxy_.advise(server_.model));
        out_.report.proxy_bytes += toy_proxy::model_bytes;
        note("proxy", "advise", {}, toy_proxy::advice_bytes);
      }
    }
    const auto every = rules_.evaluation.every;
    if (info_.round_of_task + 1 == info_.rounds_of_task || (every > 0 && (info_.round.value + 1) % every == 0))
      evaluate();
  }

  void evaluate() {
    const auto& opened = rules_.tasks[info_.task.value].seen_classes;
    const class_range classes{0, rules_.classes};
    const auto found = server_.metrics(info_.task, rules_.evaluation.mask == evaluation_mask::all ? classes : opened);
    for (const auto percent : found.accuracies)
      digest_.add(percent);
    digest_.add(found.loss);
    note("server", "evaluate");
    const auto accuracy = found.accuracies.front();
    out_.evaluations.push_back({.round = info_.round, .at = now_, .accuracy = accuracy, .loss = found.loss});
    if (loss_rows_ > 0.0)
      out_.evaluations.back().training_loss = loss_sum_ / loss_rows_;
  }

  void draw_clients() {
    const auto places = rules_.rounds.concurrency - std::ssize(works_);
    const auto drawn = rules_.is_async() ? clients_.drawn_for(places, next_id_) : clients_.choose_cohort(info_.round);
    for (const auto client : drawn)
      dispatch(client);
    if (!rules_.is_async() && !drawn.empty())
      for (const auto client : clients_.choose_observers(info_.round))
        observe(client);
    wants_ = rules_.is_async() ? works_.empty() : drawn.empty();
    if (!rules_.is_async() && !wants_) // all of them may have dropped out
      close_if_through();
  }

  void dispatch(client_id client) {
    const auto id = next_id_++;
    const auto visit = clients_.begin_visit(client);
    const auto bytes = toy_.broadcast_bytes + (visit == 0 ? toy_.once_bytes : 0);
    out_.report.download_bytes += bytes;
    out_.report.proxy_bytes += proxy_.advice == 0 ? 0 : toy_proxy::advice_bytes;
    note("scheduler", "dispatch", client, bytes);
    const bool drops_out = population_.drops_out(client, info_.task, visit);
    if (drops_out && !rules_.is_async()) {
      ++out_.report.dropped;
      dropped_out_.push_back(client);
      return note("client", "drop_out", client);
    }
    auto work = work_of(client, visit);
    work.drops_out = drops_out;
    work.stages = toy_.durations_of(work.given);
    works_[id] = std::move(work);
    ++missing_;
    push(download_time(client, bytes), happening::stage_over, id);
  }

  [[nodiscard]] toy_work work_of(client_id client, std::uint32_t visit) const {
    const auto task = rules_.rows->central() ? info_.task : clients_.task_of(client);
    return {.given = {client, task, visit, server_.model, memories_[client.value], proxy_.advice},
            .round = info_.round};
  }
  [[nodiscard]] virtual_duration download_time(client_id client, std::int64_t bytes) const {
    const auto from_server = population_.devices().download_time({.client = client, .bytes = bytes});
    if (proxy_.advice == 0)
      return from_server;
    return std::max(from_server,
                    population_.devices().proxy_download_time({.client = client, .bytes = toy_proxy::advice_bytes}));
  }

  /// Duration and bytes of an observation; both are 0 if devices.observers_cost_time is false.
  void observe(client_id client) {
    const auto id = next_id_++;
    const auto visit = clients_.begin_visit(client);
    const auto bytes = rules_.observers_cost_time ? toy_.broadcast_bytes + (visit == 0 ? toy_.once_bytes : 0) : 0;
    out_.report.download_bytes += bytes;
    out_.report.proxy_bytes += rules_.observers_cost_time && proxy_.advice != 0 ? toy_proxy::advice_bytes : 0;
    note("scheduler", "observe", client, bytes);
    auto work = work_of(client, visit);
    work.given.observes = true;
    work.stages = toy_.durations_of(work.given);
    if (!rules_.observers_cost_time)
      std::fill(work.stages.begin(), work.stages.end(), virtual_duration{0});
    works_[id] = std::move(work);
    ++missing_;
    push(rules_.observers_cost_time ? download_time(client, bytes) : virtual_duration{0}, happening::stage_over, id);
  }

  void close() { open_ = false; }
  void close_if_through() { open_ = missing_ > 0; }

  void step() {
    if (++steps_ >= toy_federation::events_max)
      throw dead_end{};
    const auto coming = clients_.next_change();
    if (events_.empty() && coming == never)
      return close();
    if (events_.empty() || coming < events_.begin()->at) {
      now_ = coming;
      change_clients();
      return rules_.is_async() || wants_ ? draw_clients() : close_if_through();
    }
    const auto event = *events_.begin();
    events_.erase(events_.begin());
    ambiguous_ = ambiguous_ || coming == event.at;
    now_ = event.at;
    if (event.kind == happening::deadline)
      return event.number == info_.round.value ? pass_deadline() : void();
    const auto found = works_.find(event.number);
    if (found == works_.end())
      return;
    if (event.kind == happening::stage_over)
      return work_on(event.number, found->second);
    if (event.kind == happening::arrival)
      return arrive(event.number, found->second);
    if (event.kind == happening::proxy_arrival)
      return arrive_at_proxy(event.number, found->second);
    ++out_.report.dropped;
    lose(event.number, "drop_out");
    draw_clients();
  }

  void work_on(std::uint64_t id, toy_work& work) {
    const auto client = work.given.client;
    if (work.drops_out) {
      note("client", "start", client);
      const auto stage = work.stages.empty() ? virtual_duration{0} : work.stages[0];
      const double part = population_.dropout_point(client, work.given.visit) * static_cast<double>(stage.count());
      return push(virtual_duration(static_cast<std::int64_t>(std::ceil(part))), happening::drop_out, id);
    }
    if (work.stage < work.stages.size()) {
      note("client", work.stage == 0 ? "start" : "next_stage", client);
      return push(work.stages[work.stage++], happening::stage_over, id);
    }
    if (work.given.observes)
      return end_observation(id, work);
    const auto result = toy_.result_of(work.given);
    note("client", "upload", client, result.upload_bytes);
    work.ended = now_;
    if (result.to_proxy == 0)
      return push(population_.devices().upload_time({.client = client, .bytes = result.upload_bytes}),
                  happening::arrival, id);
    note("client", "to_proxy", client, result.proxy_bytes);
    push(population_.devices().proxy_upload_time({.client = client, .bytes = result.proxy_bytes}),
         happening::proxy_arrival, id);
  }

  /// The upload is delivered when the proxy, too, has received its part.
  void arrive_at_proxy(std::uint64_t id, const toy_work& work) {
    const auto client = work.given.client;
    const auto result = toy_.result_of(work.given);
    note("proxy", "receive", client, result.proxy_bytes);
    for (const std::int64_t item : {std::int64_t{now_.time_since_epoch().count()}, std::int64_t{client.value},
                                    std::int64_t{work.round.value}, result.proxy_bytes})
      digest_.add(item);
    proxy_.receive({.from = client, .started_from = work.round}, result.to_proxy);
    out_.report.proxy_bytes += result.proxy_bytes;
    const auto at_server =
        work.ended + population_.devices().upload_time({.client = client, .bytes = result.upload_bytes});
    push(std::max(at_server, now_) - now_, happening::arrival, id);
  }

  void end_observation(std::uint64_t id, const toy_work& work) {
    const auto client = work.given.client;
    const auto result = toy_.result_of(work.given);
    note("client", "observed", client);
    digest_.add(std::int64_t{now_.time_since_epoch().count()});
    digest_.add(std::int64_t{client.value});
    ++out_.report.observations;
    out_.report.counts["toy"] += result.count;
    memories_[client.value] = result.memory.value_or(memories_[client.value]);
    clients_.end_visit(client);
    const bool of_this_round = work.round == info_.round;
    works_.erase(id);
    missing_ -= of_this_round;
    open_ = !of_this_round || missing_ > 0;
    if (open_ && wants_)
      draw_clients();
  }

  /// Computes, folds and commits the client's round at its due time, not earlier.
  void arrive(std::uint64_t id, const toy_work& work) {
    const auto client = work.given.client;
    const auto result = toy_.result_of(work.given);
    note("server", "deliver", client, result.upload_bytes);
    for (const std::int64_t item : {std::int64_t{now_.time_since_epoch().count()}, std::int64_t{client.value},
                                    std::int64_t{work.round.value}, result.rows, result.upload_bytes})
      digest_.add(item);
    delivery upload{.from = client, .started_from = work.round, .rows = result.rows};
    if (rules_.is_async()) {
      upload.staleness = std::int64_t{info_.round.value} - std::int64_t{work.round.value};
      upload.staleness_weight = staleness_weight(rules_.rounds, upload.staleness);
    }
    server_.fold(upload, result.upload);
    ++folded_;
    if (result.loss != 0.0) {
      loss_rows_ += static_cast<double>(result.rows);
      loss_sum_ += static_cast<double>(result.rows) * result.loss;
    }
    out_.report.counts["toy"] += result.count;
    ++out_.report.client_rounds;
    out_.report.upload_bytes += result.upload_bytes;
    out_.report.staleness_sum += upload.staleness;
    out_.report.staleness_max = std::max(out_.report.staleness_max, upload.staleness);
    memories_[client.value] = result.memory.value_or(memories_[client.value]);
    clients_.end_visit(client);
    const bool of_this_round = work.round == info_.round;
    works_.erase(id);
    if (rules_.is_async())
      return folded_ == rules_.uploads_of_step() ? close() : draw_clients();
    missing_ -= of_this_round;
    open_ = !of_this_round || missing_ > 0;
    if (open_ && wants_)
      draw_clients();
  }

  /// Drops the work and makes the client idle.
  void lose(std::uint64_t id, const char* reason) {
    const auto client = works_.at(id).given.client;
    note("client", reason, client);
    clients_.end_visit(client);
    works_.erase(id);
  }

  void pass_deadline() {
    note("scheduler", "deadline");
    std::vector<std::uint64_t> late;
    for (const auto& [id, work] : works_)
      if (work.round == info_.round)
        late.push_back(id);
    for (const auto id : late)
      out_.report.late_uploads += works_.at(id).given.observes ? 0 : 1;
    for (const auto id : late)
      rules_.drops_late() ? lose(id, "late") : note("client", "late", works_.at(id).given.client);
    close();
  }

  void change_clients() {
    for (const auto& [client, change, task] : clients_.change_until(now_)) {
      if (change == client_change::joined) {
        ++out_.report.joined;
        note("client", "enrol", client);
      } else if (change == client_change::left) {
        leave(client);
      } else if (change == client_change::entered_task) {
        ++out_.report.transitions;
        note("client", "task", client);
        if (population_.member(client, task) == membership::left &&
            population_.member(client, {task.value - 1}) != membership::left)
          leave(client);
      }
    }
    out_.report.enrolled_max = std::max(out_.report.enrolled_max, clients_.enrolled());
  }

  void leave(client_id client) {
    ++out_.report.left;
    const auto is_own = [&](const auto& entry) { return entry.second.given.client == client; };
    const auto at_work = std::find_if(works_.begin(), works_.end(), is_own);
    if (at_work == works_.end()) {
      note("client", "left", client);
    } else {
      missing_ -= !rules_.is_async() && at_work->second.round == info_.round;
      lose(at_work->first, "left");
    }
    if (rules_.rejoin == rejoin_policy::without_memory)
      memories_[client.value] = 0;
  }

  const toy_federation& toy_;
  const federation_settings& rules_ = toy_.settings;
  const population& population_ = *rules_.clients;
  toy_server server_;
  toy_proxy proxy_;
  run_outcome out_;
  run_digest digest_;
  reference_clients clients_;
  std::vector<std::uint64_t> memories_;
  std::map<std::uint64_t, toy_work> works_;
  std::set<toy_event> events_;
  virtual_time now_{};
  std::uint64_t sequence_ = 0, next_id_ = 0;
  round_info info_;
  bool open_ = false, wants_ = false, ambiguous_ = false;
  std::int64_t missing_ = 0, folded_ = 0, steps_ = 0;
  double loss_rows_ = 0.0, loss_sum_ = 0.0; // sums over the round's uploads
  std::vector<client_id> dropped_out_;      // clients of the open round
};

} // namespace

std::optional<run_outcome> simulated(const toy_federation& toy) {
  try {
    return simulator(toy).run();
  } catch (const dead_end&) {
    run_outcome outcome;
    outcome.report.status = run_status::failed;
    return outcome;
  }
}

} // namespace mneme::test
