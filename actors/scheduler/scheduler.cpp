#include "actors/scheduler/scheduler.hpp"
#include "actors/scheduler/scheduler_ask.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {
namespace {

constexpr std::size_t events_held_max = 4096; // of events.csv, before they go to the recorder

} // namespace

scheduler_state::scheduler_state(scheduler_actor::pointer self, world_ref world,
                                 std::function<scheduler_peers(scheduler_actor)> make_peers, past_ref past)
    : self_(self), world_(std::move(world)), make_peers_(std::move(make_peers)),
      clients_(static_cast<std::size_t>(world_->people->size())), memories_(world_->what.clients.memory_limit.bytes),
      presence_(world_->people), idle_(is_async() ? world_->people->size() : 0),
      to_start_(static_cast<std::size_t>(world_->shards)), past_(std::move(past)) {}

scheduler_actor::behavior_type scheduler_state::make_behavior() {
  self_->set_down_handler([this](const caf::down_msg& down) {
    if (!over_)
      finish(run_status::failed, "an actor ended although the run goes on: " + caf::to_string(down.reason));
  });
  return {
      [this](run_request) { return run(); },
      [this](stop_run) { stopping_ = true; },
      [this](wave_report& report) { take(report); },
  };
}

caf::result<run_report> scheduler_state::run() {
  promise_ = self_->make_response_promise<run_report>();
  peers_ = make_peers_(scheduler_actor{self_});
  for (const auto& shard : peers_.shards)
    self_->monitor(shard);
  self_->monitor(peers_.server);
  self_->monitor(peers_.recorder);
  if (past_)
    resume();
  else
    begin_task({0});
  return promise_;
}

/// The whole loop: handle what is due; when the next event needs numbers that are not there, let everything run that
/// can, and begin the next wave when all shards have answered.
void scheduler_state::advance() {
  while (!over_ && round_open_ && folds_missing_ == 0) {
    if (reports_missing_ > 0 && !may_go_on_meanwhile())
      return;
    if (stopping_)
      return stop_at(next_step::event);
    if (queue_.empty() || (wants_clients_ && flights_.size() == 0 && !somebody_may_come()))
      return close();
    if (needs_answer(queue_.top().event))
      return begin_wave(queue_.top().event.flight);
    const auto next = queue_.pop();
    handle(next);
    if (++events_handled_ == world_->events_max)
      stopping_ = true;
  }
}

/// Whether the next event may be handled while a wave is out: an upload whose time has come is delivered while others
/// are still computed. What ends a round, or takes clients from work, waits until all is quiet, so that nothing that
/// follows from it depends on how far the wave has come.
bool scheduler_state::may_go_on_meanwhile() {
  if (starts_missing_ > 0 || failure_ || stopping_ || wants_clients_ || !replays_.empty() || queue_.empty())
    return false;
  const auto& next = queue_.top().event;
  const auto* one = flights_.find(next.flight);
  if (!one)
    return false;
  if (next.what == event::kind::progress)
    return one->answered();
  if (next.what != event::kind::arrival || !one->result)
    return false;
  const bool ends_round =
      is_async() ? folded_ + 1 == uploads_of_step() : one->round == place_.round && cohort_missing_ == 1;
  return !ends_round && wave_delivered_bytes_ + one->upload_bytes <= results_max();
}

bool scheduler_state::needs_answer(const event& next) {
  if (next.what != event::kind::progress && next.what != event::kind::arrival)
    return false;
  const auto* one = flights_.find(next.flight);
  return one && (next.what == event::kind::progress ? !one->answered() : !one->result);
}

void scheduler_state::handle(const event& now) {
  if (now.what == event::kind::deadline) {
    if (round_open_ && now.round == place_.round)
      deadline_passed();
    return;
  }
  if (now.what == event::kind::presence)
    return presence_changes();
  auto* one = flights_.find(now.flight);
  if (!one) // abandoned since
    return;
  if (now.what == event::kind::progress)
    progress_of(*one);
  else if (now.what == event::kind::arrival)
    deliver(*one);
  else
    vanish(*one);
}

void scheduler_state::finish(run_status status, std::string error) {
  if (over_)
    return;
  over_ = true;
  abandon_flights(flights_.ids(), "abandoned");
  record("scheduler", status == run_status::done ? "end" : "stop", {});
  flush_events();
  report_.status = status;
  report_.error = std::move(error);
  report_.ended = now();
  report_.digest = digest_.value();
  report_.trace_digest = trace_.value();
  promise_.deliver(std::move(report_));
}

void scheduler_state::record(const char* actor, const char* what, std::optional<client_id> who, std::int64_t bytes) {
  if (!world_->trace)
    return;
  events_.push_back({.at = now(),
                     .actor = actor,
                     .event = what,
                     .client = who,
                     .task = place_.task,
                     .round = place_.round,
                     .bytes = bytes});
  if (events_.size() >= events_held_max && reports_missing_ == 0) // a wave that fails is forgotten
    flush_events();
}

void scheduler_state::flush_events() {
  if (!events_.empty())
    tell_recorder(recorded_events{std::exchange(events_, {})});
}

} // namespace mneme
