#include "runtime/federation/run_output.hpp"
namespace mneme {

void run_output::flush_events() {
  if (auto lines = log_.take_events(); lines.size() > 0)
    command(std::move(lines));
}

void run_output::end(run_status status, std::string error) {
  record("scheduler", status == run_status::done ? "end" : "stop");
  flush_events();
  command(log_.ended(status, std::move(error), now()));
  over_ = true;
}

} // namespace mneme
