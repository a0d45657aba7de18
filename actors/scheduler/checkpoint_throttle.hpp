/// checkpoint_throttle: limits the share of wall-clock time spent on checkpoints. The limit affects only the times at
/// which checkpoints are taken, never a result.
#pragma once
#include "actors/protocol/recorder_clock.hpp"
namespace mneme {

class checkpoint_throttle {
public:
  /// True if no checkpoint is being written and earlier ones took at most 5 % of the wall-clock time.
  [[nodiscard]] bool allows() const { return writing_ == 0 && used_s_ <= 0.05 * wall_.seconds(); }
  void began() {
    if (writing_++ == 0)
      began_at_s_ = wall_.seconds();
  }
  void ended() {
    if (--writing_ == 0)
      used_s_ += wall_.seconds() - began_at_s_;
  }

private:
  recorder_stopwatch wall_;
  double used_s_ = 0.0, began_at_s_ = 0.0;
  int writing_ = 0;
};

} // namespace mneme
