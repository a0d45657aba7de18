/// polling: limits the time that threads poll for messages of other processes before they sleep.
#pragma once
#include "runtime/base/tuning.hpp"
#include <chrono>
#include <thread>
#include <utility>
namespace mneme {

/// Returns `limit`, or zero on machines with few cores, where polling would slow down computing threads. Without
/// polling, waking a thread takes 40 to 80 us on a virtual machine. Polling does not affect results.
[[nodiscard]] inline std::chrono::microseconds polling_time(std::chrono::microseconds limit) {
  static const bool has_spare_cores = std::thread::hardware_concurrency() >= tuning::polling_cores;
  return has_spare_cores ? limit : std::chrono::microseconds{0};
}

/// Keeps an actor's thread awake while messages are expected. The actor repeatedly sends itself a message, so that its
/// thread keeps checking the mailbox. Other actors and threads run in between.
class spin_window {
public:
  /// Call when a message has arrived or a request was sent. Returns true if the actor must start polling.
  [[nodiscard]] bool extend() {
    const auto span = polling_time(tuning::actor_spin_time);
    until_ = std::chrono::steady_clock::now() + span;
    return span.count() > 0 && !std::exchange(looks_, true);
  }
  /// Call when the actor has polled. Returns true if it must poll again.
  [[nodiscard]] bool should_continue() {
    std::this_thread::yield();
    looks_ = std::chrono::steady_clock::now() < until_;
    return looks_;
  }

private:
  std::chrono::steady_clock::time_point until_{};
  bool looks_ = false;
};

} // namespace mneme
