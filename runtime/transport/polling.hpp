/// polling: for how long threads look for messages of other processes before they sleep.
#pragma once
#include "runtime/base/tuning.hpp"
#include <chrono>
#include <thread>
#include <utility>
namespace mneme {

/// To wake a thread that sleeps takes 40 to 80 us on a virtual machine; but where a machine has few cores, those that
/// look take them from those that compute. When a thread sleeps changes no result. @return `limit`, or zero there
[[nodiscard]] inline std::chrono::microseconds polling_time(std::chrono::microseconds limit) {
  static const bool has_spare_cores = std::thread::hardware_concurrency() >= tuning::polling_cores;
  return has_spare_cores ? limit : std::chrono::microseconds{0};
}

/// For how long an actor keeps its thread awake, because more messages will come soon: it sends itself a message again
/// and again, so that its thread finds what has come meanwhile. Other actors and other threads go first each time.
class awake_time {
public:
  /// Something has come, or was sent that will be answered. True where the actor has to begin to look.
  [[nodiscard]] bool extend() {
    const auto span = polling_time(tuning::frames_awaited);
    until_ = std::chrono::steady_clock::now() + span;
    return span.count() > 0 && !std::exchange(looks_, true);
  }
  /// It has looked. True where it has to look again.
  [[nodiscard]] bool goes_on() {
    std::this_thread::yield();
    looks_ = std::chrono::steady_clock::now() < until_;
    return looks_;
  }

private:
  std::chrono::steady_clock::time_point until_{};
  bool looks_ = false;
};

} // namespace mneme
