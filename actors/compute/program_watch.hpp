/// program_watch: what happens between the slices of the programs that a worker runs.
#pragma once
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/recorder_clock.hpp"
#include "actors/protocol/run_context.hpp"
#include "runtime/training/program_batch.hpp"
#include <optional>
namespace mneme {

/// Shows progress, writes what slices have made, and ends programs of a run that is interrupted. Wall time decides how
/// often, and no result.
class program_watch final : public slice_watch {
public:
  /// @param worker whose thread it is; outlives it
  program_watch(worker_actor::pointer worker, run_context_ref run) : worker_(worker), run_(std::move(run)) {}
  /// Where progress is shown.
  void show_to(recorder_actor recorder) { recorder_ = std::move(recorder); }
  [[nodiscard]] bool go_on(const std::string& name, double progress) override;

private:
  void save(bool at_once);

  worker_actor::pointer worker_;
  run_context_ref run_;
  recorder_actor recorder_;
  std::optional<recorder_stopwatch> shown_{}; // since the last time
  recorder_stopwatch since_saved_;
  double save_took_s_ = 0.0;
};

} // namespace mneme
