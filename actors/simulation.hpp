/// simulation: runs one scenario from start to end; what `mneme run` calls.
#pragma once
#include "actors/progress.hpp"
#include "runtime/run_directory.hpp"
#include "runtime/scenario/scenario.hpp"
#include <atomic>
namespace mneme {

struct run_options {
  std::filesystem::path out{}; ///< Empty: runs/<scenario>-<strategy>-s<seed>-<digest8>.
  std::int64_t threads = 0;    ///< CAF threads, and workers where worker.count is 0; 0: one per core.
  progress_style style = progress_style::lines;
  bool trace = false;
  /// Set to 1 by the first SIGINT: the run finishes the event it is at and ends as interrupted.
  const std::atomic<int>* interrupts = nullptr;
};

/// Loads the data, builds the model, runs the federation and writes the run directory. Fails with
/// findings for bad input, before anything is written; a run that starts ends with its summary,
/// whose status is "done", "failed" (`error` names client, round and job) or "interrupted".
/// @pre one call at a time in a process
[[nodiscard]] expected<run_summary> run_simulation(const scenario& what, const run_options& options);

/// What can be checked without running: data files, tasks, partition, model and weights. For `mneme validate`.
[[nodiscard]] findings check_against_data(const scenario& what);

} // namespace mneme
