/// run_output: what the federation wants done, and what it tells of itself, in its order.
#pragma once
#include "runtime/federation/federation_command.hpp"
#include "runtime/federation/run_clock.hpp"
#include "runtime/federation/run_log.hpp"
namespace mneme {

class run_output {
public:
  /// @param settings what is traced @param clock of the events @param place of the open round, which events name. Clock
  /// and place outlive this.
  run_output(const federation_settings& settings, const run_clock& clock, const round_place& place)
      : trace_(settings.trace), clock_(clock), place_(place), log_(settings.trace, settings.values_round) {}

  /// Nothing is wanted any more once the run is over.
  void command(federation_command order) {
    if (!over_)
      commands_.push_back(std::move(order));
  }
  /// Swaps the commands that wait for those in `taken`, which are forgotten.
  void take_commands(std::vector<federation_command>& taken) {
    taken.clear();
    std::swap(taken, commands_);
  }

  /// A line of events.csv.
  void record(const char* actor, const char* event, std::optional<client_id> client = {}, std::int64_t bytes = 0) {
    if (trace_)
      log_.record(now(), {.task = place_.task, .round = place_.round}, actor, event, client, bytes);
  }
  /// Lines that wait go to the recorder; not while a wave is out, because one that fails is forgotten.
  void flush_events();
  void flush_many_events() {
    if (log_.has_many_events())
      flush_events();
  }
  [[nodiscard]] run_log& log() noexcept { return log_; }
  [[nodiscard]] run_report& report() noexcept { return log_.report(); }

  /// A wave begins.
  void mark() { log_.mark(clock_.now()); }
  /// It has failed: how a failed run ends does not depend on how far its last wave had come.
  void return_to_mark() { failed_at_ = log_.return_to_mark(); }
  /// The run is over; nothing follows the report.
  void end(run_status status, std::string error);
  [[nodiscard]] bool is_over() const noexcept { return over_; }

private:
  [[nodiscard]] virtual_time now() const { return failed_at_ ? *failed_at_ : clock_.now(); }

  const bool trace_;
  const run_clock& clock_;
  const round_place& place_;
  run_log log_;
  std::vector<federation_command> commands_;
  std::optional<virtual_time> failed_at_; // where virtual time stood when the wave was begun that failed
  bool over_ = false;
};

} // namespace mneme
