/// run_clock: virtual time, and what is going to happen in it.
#pragma once
#include "runtime/federation/federation_event.hpp"
#include "runtime/federation/in_flight_table.hpp"
namespace mneme {

class run_clock {
public:
  explicit run_clock(const federation_settings& settings);

  // -- what happens
  /// The time of the event that was taken last.
  [[nodiscard]] virtual_time now() const noexcept { return queue_.now(); }
  [[nodiscard]] bool has_events() const noexcept { return !queue_.empty(); }
  /// @pre has_events()
  [[nodiscard]] const federation_event& next() const noexcept { return queue_.top().event; }
  /// Takes the next event; its time is now. @pre has_events()
  [[nodiscard]] federation_event take_next() {
    ++events_taken_;
    ++fruitless_events_;
    return queue_.pop();
  }
  [[nodiscard]] bool has_begun() const noexcept { return events_taken_ > 0; }
  /// The federation stops by itself here.
  [[nodiscard]] bool is_at_last_event() const noexcept { return events_taken_ == events_max_; }

  // -- what is going to happen
  /// Each assignment has one event in the queue. @param where of an arrival
  void expect(assignment_in_flight& owner, federation_event::kind next, virtual_time at, party_id where = {});
  /// Leaves the queue after all else of its time.
  void expect_deadline(round_id round, virtual_time at);
  /// The queue holds an event for the next change of a client; one for a later change may be left from before a task
  /// was opened, and will find nothing to do.
  void expect_churn(std::optional<virtual_time> next);
  /// Transfers that share a link of the server go on otherwise then.
  void expect_link_change(virtual_time at) { queue_.push(at, {.event_kind = federation_event::kind::link_change}); }
  /// Changes up to now have been made.
  void made_changes() noexcept {
    if (churn_at_ <= now())
      churn_at_ = never;
  }

  // -- dead ends
  /// An upload was delivered, or a round closed.
  void made_progress() noexcept { fruitless_events_ = 0; }
  /// Nothing can come of the next event, or of all that follow. @pre has_events()
  [[nodiscard]] bool is_dead_end() const {
    return next_is_never() || fruitless_events_ >= fruitless_max_;
  }
  /// What comes next would be behind the end of all runs. @pre has_events()
  [[nodiscard]] bool next_is_never() const { return queue_.top().at >= end_of_runs; }
  /// Why, in words. @param open the open round
  [[nodiscard]] std::string dead_end(round_id open) const;

  void persist(archive& state);
  /// What was loaded is in order.
  [[nodiscard]] bool is_sound() const;

private:
  const std::int64_t events_max_;
  const bool link_traces_end_;
  const std::int64_t fruitless_max_;
  event_queue<federation_event> queue_;
  virtual_time churn_at_ = never;   // of the earliest event in the queue that waits for churn
  std::uint64_t next_sequence_ = 0; // of the events of assignments
  std::int64_t events_taken_ = 0;
  std::int64_t fruitless_events_ = 0; // since there was progress
};

} // namespace mneme
