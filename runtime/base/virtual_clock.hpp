/// virtual_clock: virtual time, and the queue of future events.
#pragma once
#include "runtime/base/check.hpp"
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>
namespace mneme {

/// A std::chrono clock without now(): the time arrives in messages. Resolution 1 ns.
struct virtual_clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<virtual_clock>;
  static constexpr bool is_steady = true;
};
using virtual_time = virtual_clock::time_point;
using virtual_duration = virtual_clock::duration;

/// Converts `seconds` to a virtual duration, rounded up to 1 ns. @pre 0 <= seconds < 9e9
[[nodiscard]] virtual_duration rounded_up(double seconds);
/// Seconds since the start of the run.
[[nodiscard]] inline double in_seconds(virtual_time at) {
  return std::chrono::duration<double>(at.time_since_epoch()).count();
}

/// Order among events of equal times: deadlines come after ordinary events.
enum class precedence : std::uint8_t { ordinary, deadline };

/// Future events in a total order: by time, with deadlines last among equal times, and then in the order of insertion.
/// Only the scheduler owns a queue.
template <class Event>
class event_queue {
public:
  struct entry {
    virtual_time at{};
    std::uint64_t place = 0; // order among events of one time: sequence number, plus 2^63 for deadlines
    Event event{};
    template <class Archive>
    void persist(Archive& state) {
      state(at)(place)(event);
    }
  };

  /// Time of the last event taken; the start of the run before the first pop().
  [[nodiscard]] virtual_time now() const noexcept { return now_; }
  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }

  /// Adds an event. @pre `at >= now()`
  void push(virtual_time at, Event event, precedence rank = precedence::ordinary) {
    MNEME_CHECK(at >= now_, at.time_since_epoch().count(), now_.time_since_epoch().count());
    heap_.push_back({at, std::uint64_t{rank == precedence::deadline} << 63 | next_sequence_++, std::move(event)});
    std::push_heap(heap_.begin(), heap_.end(), later{});
  }

  /// The event that pop() would return. @pre not `empty()`
  [[nodiscard]] const entry& top() const noexcept { return heap_.front(); }

  /// Removes the earliest event and advances now() to its time. @pre not `empty()`
  [[nodiscard]] Event pop() {
    MNEME_CHECK(!heap_.empty());
    std::pop_heap(heap_.begin(), heap_.end(), later{});
    auto first = std::move(heap_.back());
    heap_.pop_back();
    now_ = first.at;
    return std::move(first.event);
  }

  template <class Archive>
  void persist(Archive& state) {
    state(heap_)(now_)(next_sequence_); // the order of a heap is preserved
  }

private:
  struct later { // a type, because a function would not be inlined
    bool operator()(const entry& a, const entry& b) const noexcept {
      return a.at != b.at ? a.at > b.at : a.place > b.place;
    }
  };

  std::vector<entry> heap_;
  virtual_time now_{};
  std::uint64_t next_sequence_ = 0;
};

} // namespace mneme
