#include "runtime/federation/federation.hpp"
#include "runtime/base/tuning.hpp"
#include <fmt/format.h>
namespace mneme {

federation::federation(federation_settings settings)
    : settings_(std::move(settings)), pool_(settings_), memories_(settings_.memory_bytes_max),
      start_queue_(static_cast<std::size_t>(settings_.shards)),
      results_(settings_.results_bytes_max, settings_.results_are_repeatable), log_(settings_.trace) {}

void federation::begin() { begin_task({0}); }

/// The whole loop: handle what is due; when the next event needs numbers that are not there, let everything run that
/// can, and begin the next wave when all shards have answered. Who wants the run to end is heard between events.
void federation::advance() {
  for (auto events = tuning::events_without_pause; !over_ && round_.is_open && !deliveries_.waits_for_server();) {
    if (wave_.is_out() && !may_go_on_during_wave())
      return;
    if (stopping_)
      return stop_at(next_step::event);
    if (queue_.empty() || (round_.wants_clients && in_flight_.size() == 0 && !pool_.clients_may_come()))
      return close();
    if (needs_answer(queue_.top().event))
      return begin_wave(queue_.top().event.assignment);
    if (is_dead_end())
      return fail(dead_end());
    if (--events < 0)
      return command(pause{});
    const auto next = queue_.pop();
    ++fruitless_events_;
    handle(next);
    if (++events_handled_ == settings_.events_max)
      stopping_ = true;
  }
}

std::int64_t federation::fruitless_events_max() const {
  return tuning::fruitless_events_max + tuning::fruitless_events_of_client * settings_.clients->size();
}

/// True if nothing can come of the next event, or of all that follow.
bool federation::is_dead_end() const {
  return queue_.top().at >= end_of_runs || fruitless_events_ >= fruitless_events_max();
}

/// Why, in words.
std::string federation::dead_end() const {
  const auto& next = queue_.top();
  if (next.at >= end_of_runs)
    return fmt::format("virtual time would go beyond {:.0f} years in round {}: {} make it so long",
                       in_seconds(end_of_runs) / (365.25 * 24 * 3600), round_.place.round.value + 1,
                       next.event.deciding_keys());
  return fmt::format("nothing has come of the last {} events: in round {} clients come and go, but none delivers "
                     "anything; expected stays ([enrolment], devices.availability) long enough for a client's work "
                     "(devices.rows_per_second and links), and devices.dropout below 1",
                     fruitless_events_max(), round_.place.round.value + 1);
}

/// An upload whose time has come is delivered while others are still computed. What ends a round, or takes clients from
/// work, waits until all is quiet, so that nothing that follows from it depends on how far the wave has come.
bool federation::may_go_on_during_wave() {
  if (!wave_.is_known() || wave_.failure() || stopping_ || round_.wants_clients || !repeated_.empty() || queue_.empty())
    return false;
  const auto& next = queue_.top().event;
  const auto* const owner = in_flight_.find(next.assignment);
  if (!owner || is_dead_end())
    return false;
  if (next.event_kind == federation_event::kind::stage_over)
    return owner->answered() && !owner->ends_without_upload();
  if (next.event_kind != federation_event::kind::arrival || next.where != party_id::server || !owner->has_result())
    return false;
  const bool ends_round = settings_.is_async() ? round_.folded + 1 == settings_.uploads_of_step()
                                               : owner->round == round_.place.round && round_.missing == 1;
  return !ends_round && results_.has_room_during_wave(*owner);
}

bool federation::needs_answer(const federation_event& next) {
  const bool is_arrival = next.event_kind == federation_event::kind::arrival;
  if (!is_arrival && next.event_kind != federation_event::kind::stage_over)
    return false;
  const auto* const owner = in_flight_.find(next.assignment);
  return owner && !(is_arrival ? owner->has_result() : owner->answered());
}

void federation::handle(const federation_event& now) {
  if (now.event_kind == federation_event::kind::deadline) {
    if (round_.is_open && now.round == round_.place.round)
      deadline_passed();
    return;
  }
  if (now.event_kind == federation_event::kind::churn)
    return churn();
  auto* const owner = in_flight_.find(now.assignment);
  if (!owner) // abandoned since
    return;
  if (now.event_kind == federation_event::kind::stage_over)
    stage_over(*owner);
  else if (now.event_kind == federation_event::kind::arrival)
    arrive(*owner, now.where);
  else
    drop_out(*owner);
}

void federation::finish(run_status status, std::string error) {
  if (over_)
    return;
  abandon_assignments(in_flight_.ids(), "abandoned");
  record("scheduler", status == run_status::done ? "end" : "stop", {});
  flush_events();
  command(log_.ended(status, std::move(error), now()));
  over_ = true;
}

/// Nothing is wanted any more once the run is over.
void federation::command(federation_command wanted) {
  if (!over_)
    commands_.push_back(std::move(wanted));
}

void federation::take_commands(std::vector<federation_command>& taken) {
  taken.clear();
  std::swap(taken, commands_);
}

void federation::record(const char* actor, const char* event, std::optional<client_id> client, std::int64_t bytes) {
  if (!settings_.trace)
    return;
  log_.record(now(), {.task = round_.place.task, .round = round_.place.round}, actor, event, client, bytes);
  if (log_.has_many_events() && !wave_.is_out()) // a wave that fails is forgotten
    flush_events();
}

void federation::flush_events() {
  if (auto events = log_.take_events(); !events.empty())
    command(recorded_events{std::move(events)});
}

} // namespace mneme
