/// program_batch: runs jobs of one program slice by slice.
#pragma once
#include "runtime/method/jobs.hpp"
#include "runtime/training/image_store.hpp"
#include "runtime/training/outcome_store.hpp"
#include "runtime/training/slice_store.hpp"
namespace mneme {

/// Callbacks that may stop running jobs.
class slice_monitor {
public:
  virtual ~slice_monitor() = default;
  /// Called before each slice of a program. `progress` in [0, 1] is the progress of the slowest call. Returns false to
  /// stop the run; unfinished jobs then end as interrupted.
  [[nodiscard]] virtual bool should_continue(const std::string& name, double progress) = 0;
  /// Must be cheap, because it is called before each step of a training and each block of a pass. Returns true to stop
  /// the run.
  [[nodiscard]] virtual bool should_stop() { return false; }
};

/// Runs programs to their ends with autograd enabled, whatever the caller's mode. Returns one outcome per job, in
/// order. If a slice fails for several calls together, it runs again for each call, so that only the failing job's
/// outcome is an error text.
/// @param slices stores states between slices; on a CPU a job resumes from a state found there. Null: not stored
/// @param monitor may stop the run between slices; null: it is not stopped
/// @param kept on a CPU, stores outcomes of programs with several slices, for later runs; may be null
/// @pre `batch` is not empty and has programs of one fuse key
[[nodiscard]] outcomes run_programs(std::span<const job> batch, image_store& images, slice_store* slices = nullptr,
                                    slice_monitor* monitor = nullptr, outcome_store* kept = nullptr);

} // namespace mneme
