// The scheduler's clients that come, go, or change task by themselves, at times that follow from keys alone.
#include "actors/scheduler/scheduler.hpp"
#include <algorithm>
namespace mneme {

/// The queue holds an event for the next change; one for a later change may be left from before a task was opened, and
/// will find nothing to do.
void scheduler_state::expect_change() {
  const auto next = presence_.next_change();
  if (!next || *next >= change_at_)
    return;
  change_at_ = *next;
  queue_.push(change_at_, {.what = event::kind::presence, .flight = {}, .round = {}});
}

/// Makes the changes that are due.
void scheduler_state::keep_up() {
  if (change_at_ <= queue_.now())
    change_at_ = never;
  for (const auto& change : presence_.move_to(queue_.now()))
    take(change);
  report_.enrolled_max = std::max(report_.enrolled_max, presence_.enrolled());
  expect_change();
}

void scheduler_state::presence_changes() {
  keep_up();
  if (is_async())
    fill_places();
  else if (wants_clients_)
    try_dispatch();
  else if (cohort_missing_ == 0)
    close();
}

void scheduler_state::take(const presence_change& change) {
  using kind = presence_change::kind;
  if (change.what == kind::joined) {
    ++report_.joined;
    record("client", "enrol", change.who);
  } else if (change.what == kind::left) {
    leave(change.who);
  } else if (change.what == kind::entered_task) {
    ++report_.transitions;
    record("client", "task", change.who);
    const auto& people = *world_->people;
    if (people.member(change.who, change.task) == membership::left &&
        people.member(change.who, {change.task.value - 1}) != membership::left)
      leave(change.who);
  }
  if (is_async())
    idle_.put(change.who, available(change.who));
}

/// What a client was at is lost; what it remembers stays, if it may use that again.
void scheduler_state::leave(client_id who) {
  ++report_.left;
  if (const auto at_work = at_work_.find(who); at_work != at_work_.end()) {
    const auto id = at_work->second;
    if (flights_.at(id).round == place_.round && !is_async())
      --cohort_missing_;
    abandon_flights({id}, "left");
  } else {
    record("client", "left", who);
  }
  if (world_->what.enrolment.rejoin == rejoining::without_memory)
    memories_.erase(who);
}

/// A file that holds what memory has no room for can fail like any other.
memory_ref scheduler_state::remembered(client_id who) {
  try {
    return memories_.find(who);
  } catch (const std::exception& e) {
    finish(run_status::failed, e.what());
    return nullptr;
  }
}

void scheduler_state::remember(client_id who, memory_ref what) {
  try {
    memories_.put(who, std::move(what));
  } catch (const std::exception& e) {
    finish(run_status::failed, e.what());
  }
}

bool scheduler_state::may_leave_at_work() const {
  return world_->people->comes_and_goes() || world_->people->changes_task_one_by_one();
}

/// Whether waiting can bring anybody to a run in which nobody is at work.
bool scheduler_state::somebody_may_come() const {
  if (!presence_.next_change())
    return false;
  if (!presence_.endless())
    return true;
  for (std::uint32_t c = 0; c < clients_.size(); ++c)
    if (plan_.clients_without_rows || world_->rows->size({c}, presence_.task_of({c})) > 0)
      return true;
  return false;
}

} // namespace mneme
