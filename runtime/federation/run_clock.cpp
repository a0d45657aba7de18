#include "runtime/federation/run_clock.hpp"
#include "runtime/base/tuning.hpp"
#include <fmt/format.h>
namespace mneme {

run_clock::run_clock(const federation_settings& settings)
    : events_max_(settings.events_max), link_traces_end_(settings.clients->devices().link_traces_end()),
      fruitless_max_(tuning::stalled_events_max + tuning::stalled_events_per_client * settings.clients->size()) {}

void run_clock::expect(assignment_in_flight& owner, federation_event::kind next, virtual_time at, party_id where) {
  owner.event_sequence = next_sequence_++;
  owner.is_uploading = next == federation_event::kind::arrival;
  queue_.push(at, {.event_kind = next, .where = where, .assignment = owner.id});
}

void run_clock::schedule_deadline(round_id round, virtual_time at) {
  queue_.push(at, {.event_kind = federation_event::kind::deadline, .round = round}, precedence::deadline);
}

void run_clock::schedule_churn(std::optional<virtual_time> next) {
  if (!next || *next >= churn_at_)
    return;
  churn_at_ = *next;
  queue_.push(churn_at_, {.event_kind = federation_event::kind::churn});
}

std::string run_clock::stall_reason(round_id open) const {
  const auto& next = queue_.top();
  if (next.at >= end_of_runs)
    return fmt::format("virtual time would exceed {:.0f} years in round {} because of {}{}",
                       in_seconds(end_of_runs) / (365.25 * 24 * 3600), open.value + 1, next.event.related_keys(),
                       link_traces_end_ ? "; a trace of devices.link_file may have ended: expected longer ones, "
                                          "devices.trace_end = \"repeat\", or a rounds.deadline"
                                        : "");
  return fmt::format("no upload arrived in the last {} events: in round {} clients join and leave, but none delivers; "
                     "expected stays ([enrolment], devices.availability) long enough for a client's work "
                     "(devices.rows_per_second and links), and devices.dropout below 1",
                     fruitless_max_, open.value + 1);
}

void run_clock::persist(archive& state) { state(queue_)(churn_at_)(next_sequence_)(stalled_events_); }

bool run_clock::is_valid() const {
  auto events = queue_;
  for (auto before = events.now(); !events.empty(); static_cast<void>(events.pop())) {
    if (events.top().at < before || before.time_since_epoch().count() < 0)
      return false;
    before = events.top().at;
  }
  return true;
}

} // namespace mneme
