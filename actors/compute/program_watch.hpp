/// program_watch: what happens between the slices of the programs that a worker runs, and ends other jobs.
#pragma once
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/recorder_clock.hpp"
#include "actors/protocol/run_context.hpp"
#include "runtime/training/program_batch.hpp"
#include <optional>
namespace mneme {

/// Shows progress, writes what slices have made, and ends the jobs of a run that is interrupted. Wall time decides how
/// often, and no result.
class program_watch final : public slice_watch {
public:
  /// @param worker whose thread it is; outlives it
  program_watch(worker_actor::pointer worker, run_context_ref run) : worker_(worker), run_(std::move(run)) {}
  /// Where progress is shown.
  void show_to(recorder_actor recorder) { recorder_ = std::move(recorder); }
  [[nodiscard]] bool go_on(const std::string& name, double progress) override;
  /// Jobs that end soon are waited for, so that what they have computed gets into the last checkpoint.
  [[nodiscard]] bool is_over() override;

private:
  [[nodiscard]] bool is_interrupted() const { return run_->interrupts && run_->interrupts->load() > 0; }
  void save(bool at_once);

  worker_actor::pointer worker_;
  run_context_ref run_;
  recorder_actor recorder_;
  std::optional<recorder_stopwatch> shown_{};       // since the last time
  std::optional<recorder_stopwatch> interrupted_{}; // since a step was the first to see it
  recorder_stopwatch since_saved_;
  double save_took_s_ = 0.0;
};

} // namespace mneme
