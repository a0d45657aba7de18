#include "actors/compute/program_monitor.hpp"
#include "runtime/base/exception_message.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

bool program_monitor::should_continue(const std::string& name, double progress) {
  constexpr double shown_min_s = 0.2;
  const bool ends = is_interrupted();
  save(ends);
  if (recorder_ && (!shown_ || shown_->seconds() > shown_min_s)) {
    worker_->send(recorder_, program_progress{.name = name, .share = progress});
    shown_.emplace();
  }
  return !ends;
}

bool program_monitor::should_stop() {
  constexpr double waited_s = 2.0;
  if (!is_interrupted())
    return false;
  if (!interrupted_)
    interrupted_.emplace();
  return interrupted_->seconds() > waited_s;
}

/// Saves finished slices, using at most 5 % of the time. After a failed save the run continues; a resumed run then
/// restarts the program from its first slice.
void program_monitor::save(bool at_once) {
  constexpr double saved_min_s = 1.0;
  if (!run_->slices || (!at_once && since_saved_.seconds() < std::max(saved_min_s, 20.0 * save_took_s_)))
    return;
  const recorder_stopwatch saving;
  const auto reason = exception_message_of([&] { run_->slices->save(); });
  if (recorder_ && !reason.empty())
    worker_->send(recorder_, run_warning{"the progress of a program was not written: " + reason});
  save_took_s_ = saving.seconds();
  since_saved_ = {};
}

} // namespace mneme
