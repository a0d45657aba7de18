/// checkpoint_pace: keeps checkpoints from slowing a run down. It decides when they are taken, never what they hold.
#pragma once
#include "actors/protocol/recorder_clock.hpp"
namespace mneme {

class checkpoint_pace {
public:
  /// One may be taken now: none is being written, and those before have used at most 5 % of the wall time.
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
