#include "runtime/federation/run_output.hpp"
namespace mneme {

void run_output::flush_events() {
  if (auto events = log_.take_events(); !events.empty())
    command(recorded_events{std::move(events)});
}

void run_output::end(run_status status, std::string error) {
  record("scheduler", status == run_status::done ? "end" : "stop");
  flush_events();
  command(log_.ended(status, std::move(error), now()));
  over_ = true;
}

} // namespace mneme
