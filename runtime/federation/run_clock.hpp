/// run_clock: virtual time and the event queue of a run.
#pragma once
#include "runtime/federation/federation_event.hpp"
#include "runtime/federation/in_flight_table.hpp"
namespace mneme {

class run_clock {
public:
  explicit run_clock(const federation_settings& settings);

  // -- taking events
  /// Time of the latest event taken.
  [[nodiscard]] virtual_time now() const noexcept { return queue_.now(); }
  [[nodiscard]] bool has_events() const noexcept { return !queue_.empty(); }
  /// The next event. @pre has_events()
  [[nodiscard]] const federation_event& next() const noexcept { return queue_.top().event; }
  /// Removes the next event and advances time to it. @pre has_events()
  [[nodiscard]] federation_event take_next() {
    ++events_taken_;
    ++stalled_events_;
    return queue_.pop();
  }
  [[nodiscard]] bool has_begun() const noexcept { return events_taken_ > 0; }
  /// True if the limit on the number of events is reached.
  [[nodiscard]] bool is_at_last_event() const noexcept { return events_taken_ == events_max_; }

  // -- scheduling events
  /// Schedules the next event of an assignment. At most one event of an assignment is pending. @param where receiving
  /// party of an arrival
  void expect(assignment_in_flight& owner, federation_event::kind next, virtual_time at, party_id where = {});
  /// Schedules a deadline. It leaves the queue after all other events at the same time.
  void schedule_deadline(round_id round, virtual_time at);
  /// Schedules the next change of availability. Opening a task may leave an event for a later change in the queue,
  /// which has no effect.
  void schedule_churn(std::optional<virtual_time> next);
  /// Schedules a change of rates on a shared server link.
  void schedule_link_change(virtual_time at) { queue_.push(at, {.event_kind = federation_event::kind::link_change}); }
  /// Records that all changes up to now have been applied.
  void record_churn() noexcept {
    if (churn_at_ <= now())
      churn_at_ = never;
  }

  // -- stalled runs
  /// Records progress: an upload was delivered, or a round closed.
  void record_progress() noexcept { stalled_events_ = 0; }
  /// True if no event in the queue can lead to progress. @pre has_events()
  [[nodiscard]] bool is_stalled() const { return next_is_never() || stalled_events_ >= fruitless_max_; }
  /// True if the next event lies beyond the latest possible time. @pre has_events()
  [[nodiscard]] bool next_is_never() const { return queue_.top().at >= end_of_runs; }
  /// Error message for a stalled run. @param open the open round
  [[nodiscard]] std::string stall_reason(round_id open) const;

  void persist(archive& state);
  /// True if the loaded state is consistent.
  [[nodiscard]] bool is_valid() const;

private:
  const std::int64_t events_max_;
  const bool link_traces_end_;
  const std::int64_t fruitless_max_;
  event_queue<federation_event> queue_;
  virtual_time churn_at_ = never;   // time of the earliest churn event in the queue
  std::uint64_t next_sequence_ = 0; // sequence number of the next assignment event
  std::int64_t events_taken_ = 0;
  std::int64_t stalled_events_ = 0; // number of events since the last progress
};

} // namespace mneme
