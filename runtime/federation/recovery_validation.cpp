// Validation of loaded checkpoints. A checksum detects damage but not forgery, so every value that the run relies on is
// checked.
#include "runtime/federation/recovery.hpp"
#include <algorithm>
namespace mneme {
namespace {

/// Throws archive_error if `holds` is false. @param error error message, such as "names ..."
void require_valid(bool holds, const char* error) {
  if (!holds)
    throw archive_error(error);
}

bool is_within(class_range classes, std::int64_t count) {
  return classes.low >= 0 && classes.low < classes.high && classes.high <= count;
}

} // namespace

/// Validates one loaded assignment.
void recovery::check_assignment(const assignment_in_flight& saved, assignment_phase phase,
                                const std::vector<virtual_duration>& stages, std::uint64_t reached) const {
  using enum assignment_phase;
  require_valid(phase == waiting || phase == computing || phase == finished || phase == evicted,
                "has an assignment in an unknown phase");
  require_valid(saved.client.value < settings_.clients->size() && saved.id < dispatch_.next_assignment(),
                "has an assignment of an unknown client");
  require_valid(static_cast<std::size_t>(saved.activity_kind) < activities.size(), "has an unknown activity");
  const auto tasks = settings_.tasks.size();
  require_valid(saved.in && saved.task.value < tasks && saved.in->info.task.value < tasks &&
                    is_within(saved.in->info.seen_classes, settings_.classes) &&
                    is_within(saved.in->info.current_classes, settings_.classes),
                "has an assignment without a broadcast, or of an unknown task");
  const auto is_past = [](virtual_duration span) { return span.count() < 0 || virtual_time(span) > end_of_runs; };
  require_valid(reached <= stages.size() && !is_past(saved.horizon.time_since_epoch()) &&
                    std::none_of(stages.begin(), stages.end(), is_past),
                "has an assignment with invalid durations of stages");
  require_valid(saved.delay.count() >= 0 && virtual_time(saved.delay) <= end_of_runs &&
                    saved.upload_arrives.time_since_epoch().count() >= 0,
                "has an assignment that started before its download ended");
  require_valid(*std::min_element(saved.sends.begin(), saved.sends.end()) >= 0 && saved.held_bytes >= 0,
                "has an upload of negative size");
  require_valid(phase != finished || !saved.uploads() || saved.result.upload,
                "has a finished round without its upload");
}

/// Validates all other loaded state.
void recovery::check_loaded(next_step next) const {
  require_valid(next <= next_step::event && (next == next_step::event) == round_.is_open, "has no next step");
  require_valid(dispatch_.is_valid(), "has a population with other clients or tasks");
  const auto tasks = settings_.tasks.size();
  const auto& info = round_.info;
  require_valid(info.task.value < tasks && is_within(info.seen_classes, settings_.classes) &&
                    is_within(info.current_classes, settings_.classes),
                "is in an unknown task");
  require_valid(next != next_step::task || info.task.value + 1 < tasks, "continues with an unknown task");
  const bool is_in_round = next == next_step::event || next == next_step::round;
  require_valid(info.round_of_task >= 0 && info.round_of_task <= info.rounds_of_task - (is_in_round ? 1 : 0),
                "is in an unknown round");
  require_valid(round_.missing >= 0 && round_.folded >= 0 && round_.opened.bytes >= 0 &&
                    (!round_.is_open || round_.opened.in),
                "has an open round without its broadcast");
  for (const auto client : round_.dropped_out)
    require_valid(client.value < settings_.clients->size(), "lost an unknown client");
  require_valid(clock_.is_valid(), "has events in the wrong order");
  require_valid(links_.is_valid(in_flight_), "has a transfer of an unknown assignment");
}

} // namespace mneme
