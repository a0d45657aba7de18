/// program_monitor: called between the slices of a worker's programs; ends them if the run is interrupted.
#pragma once
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/recorder_clock.hpp"
#include "actors/protocol/run_context.hpp"
#include "runtime/training/program_batch.hpp"
#include <optional>
namespace mneme {

/// Reports progress, saves finished slices, and ends the jobs of an interrupted run. Wall-clock time sets the intervals
/// of reports and saves, but never affects a result.
class program_monitor final : public slice_monitor {
public:
  /// @param worker runs on the same thread and must outlive this object
  program_monitor(worker_actor::pointer worker, run_context_ref run) : worker_(worker), run_(std::move(run)) {}
  /// Sets the receiver of progress reports.
  void report_progress_to(recorder_actor recorder) { recorder_ = std::move(recorder); }
  [[nodiscard]] bool should_continue(const std::string& name, double progress) override;
  /// True if the current job must end because of an interruption. Jobs that end soon may finish, so that the last
  /// checkpoint contains their results.
  [[nodiscard]] bool should_stop() override;

private:
  [[nodiscard]] bool is_interrupted() const { return run_->interrupts && run_->interrupts->load() > 0; }
  void save(bool at_once);

  worker_actor::pointer worker_;
  run_context_ref run_;
  recorder_actor recorder_;
  std::optional<recorder_stopwatch> shown_{};       // time since the last report
  std::optional<recorder_stopwatch> interrupted_{}; // time since a step first detected the interruption
  recorder_stopwatch since_saved_;
  double save_took_s_ = 0.0;
};

} // namespace mneme
