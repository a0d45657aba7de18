/// run_output: collects the federation's commands and event lines, in order.
#pragma once
#include "runtime/federation/federation_command.hpp"
#include "runtime/federation/run_clock.hpp"
#include "runtime/federation/run_log.hpp"
namespace mneme {

class run_output {
public:
  /// @param settings used for tracing @param clock supplies the time of events @param info the open round, named in
  /// events. The arguments must outlive this object.
  run_output(const federation_settings& settings, const run_clock& clock, const round_info& info)
      : trace_(settings.trace), clock_(clock), info_(info), log_(settings.trace, settings.dumped_round) {}

  /// Adds a command; ignored after the end of the run.
  void command(federation_command order) {
    if (!over_)
      commands_.push_back(std::move(order));
  }
  /// Swaps the pending commands with `taken`; the previous contents of `taken` are discarded.
  void take_commands(std::vector<federation_command>& taken) {
    taken.clear();
    std::swap(taken, commands_);
  }

  /// Adds a line to events.csv.
  void record(const char* actor, const char* event, std::optional<client_id> client = {}, std::int64_t bytes = 0) {
    if (trace_)
      log_.record(now(), {.task = info_.task, .round = info_.round}, actor, event, client, bytes);
  }
  /// Sends buffered lines to the recorder. @pre no wave is running, because the lines of a failed wave are discarded
  void flush_events();
  /// Calls flush_events() if many lines are buffered.
  void flush_many_events() {
    if (log_.has_many_events())
      flush_events();
  }
  [[nodiscard]] run_log& log() noexcept { return log_; }
  [[nodiscard]] run_report& report() noexcept { return log_.report(); }

  /// Saves the state at the start of a wave.
  void mark() { log_.mark(clock_.now()); }
  /// Restores the state from before a failed wave, so that the report does not depend on the wave's progress.
  void return_to_mark() { failed_at_ = log_.return_to_mark(); }
  /// Ends the run with a report. Later commands are ignored.
  void end(run_status status, std::string error);
  [[nodiscard]] bool is_over() const noexcept { return over_; }

private:
  [[nodiscard]] virtual_time now() const { return failed_at_ ? *failed_at_ : clock_.now(); }

  const bool trace_;
  const run_clock& clock_;
  const round_info& info_;
  run_log log_;
  std::vector<federation_command> commands_;
  std::optional<virtual_time> failed_at_; // virtual time at the start of the failed wave
  bool over_ = false;
};

} // namespace mneme
