// Validation of loaded checkpoints. A checksum detects damage but not forgery, so every value that the run relies on is
// checked.
#include "runtime/federation/recovery.hpp"
#include <algorithm>
namespace mneme {
namespace {

/// Throws archive_error if `holds` is false. @param wrong error message, such as "names ..."
void must_hold(bool holds, const char* wrong) {
  if (!holds)
    throw archive_error(wrong);
}

bool is_within(class_range classes, std::int64_t count) {
  return classes.low >= 0 && classes.low < classes.high && classes.high <= count;
}

} // namespace

/// Validates one loaded assignment.
void recovery::expect_possible(const assignment_in_flight& saved, assignment_phase phase,
                               const std::vector<virtual_duration>& stages, std::uint64_t reached) const {
  using enum assignment_phase;
  must_hold(phase == waiting || phase == computing || phase == finished || phase == evicted,
            "has an assignment in a phase that there is not");
  must_hold(saved.client.value < settings_.clients->size() && saved.id < dispatch_.next_assignment(),
            "has an assignment of a client that there is not");
  must_hold(static_cast<std::size_t>(saved.doing) < activities.size(), "has an activity that there is not");
  const auto tasks = settings_.tasks.size();
  must_hold(saved.in && saved.task.value < tasks && saved.in->place.task.value < tasks &&
                is_within(saved.in->place.opened, settings_.classes) &&
                is_within(saved.in->place.current, settings_.classes),
            "has an assignment without a broadcast, or of a task that there is not");
  const auto is_past = [](virtual_duration span) { return span.count() < 0 || virtual_time(span) > end_of_runs; };
  must_hold(reached <= stages.size() && !is_past(saved.horizon.time_since_epoch()) &&
                std::none_of(stages.begin(), stages.end(), is_past),
            "has an assignment whose stages take impossible times");
  must_hold(saved.delay.count() >= 0 && virtual_time(saved.delay) <= end_of_runs &&
                saved.upload_arrives.time_since_epoch().count() >= 0,
            "has an assignment that is ahead of its download");
  must_hold(*std::min_element(saved.sends.begin(), saved.sends.end()) >= 0 && saved.held_bytes >= 0,
            "has an upload of less than nothing");
  must_hold(phase != finished || !saved.uploads() || saved.result.upload, "has a finished round without its upload");
}

/// Validates all other loaded state.
void recovery::expect_sound(next_step next) const {
  must_hold(next <= next_step::event && (next == next_step::event) == round_.is_open, "goes on with nothing");
  must_hold(dispatch_.is_sound(), "has a population of other clients or tasks");
  const auto tasks = settings_.tasks.size();
  const auto& place = round_.place;
  must_hold(place.task.value < tasks && is_within(place.opened, settings_.classes) &&
                is_within(place.current, settings_.classes),
            "stands in a task that there is not");
  must_hold(next != next_step::task || place.task.value + 1 < tasks, "goes on with a task that there is not");
  const bool is_in_round = next == next_step::event || next == next_step::round;
  must_hold(place.round_of_task >= 0 && place.round_of_task <= place.rounds_of_task - (is_in_round ? 1 : 0),
            "stands in a round that there is not");
  must_hold(round_.missing >= 0 && round_.folded >= 0 && round_.opened.bytes >= 0 &&
                (!round_.is_open || round_.opened.in),
            "has an open round without its broadcast");
  for (const auto client : round_.dropped_out)
    must_hold(client.value < settings_.clients->size(), "lost a client that there is not");
  must_hold(clock_.is_sound(), "has events in the wrong order");
  must_hold(links_.is_sound(in_flight_), "has a transfer of an assignment that there is not");
}

} // namespace mneme
