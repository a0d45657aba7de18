/// simulation: runs or resumes one scenario, for `mneme run` and `mneme resume`.
#pragma once
#include "actors/run/progress.hpp"
#include "actors/run/run_nodes.hpp"
#include "runtime/results/run_directory.hpp"
#include "runtime/settings/scenario.hpp"
#include <atomic>
namespace mneme {

struct raw_data;
class live_view;

struct run_options {
  std::filesystem::path out{}; ///< Empty: runs/<scenario>-<strategy>-s<seed>-<digest8>.
  std::int64_t threads = 0;    ///< Number of threads, and of workers if worker.count is 0; 0: one per core.
  progress_style style = progress_style::lines;
  bool trace = false;
  /// Round, from 1, whose deliveries and model are written to values/round_N.safetensors; 0: none.
  std::int64_t dumped_round = 0;
  /// Set to 1 by the first SIGINT or SIGTERM. The run then finishes the current event, takes a checkpoint and ends as
  /// interrupted.
  const std::atomic<int>* interrupts = nullptr;
  /// Number of events after which the run interrupts itself; 0: no limit.
  std::int64_t events_max = 0;
  /// Largest size of undelivered results in a checkpoint. A resumed run recomputes the results beyond this size.
  byte_size stored_results_max{std::int64_t{16} << 20};
  /// Result of load_data() for the scenario, shared by forked processes; null: load it.
  std::shared_ptr<const raw_data> data{};
  accept_options accept{}; ///< Options for nodes that compute clients.
  /// Set to the share of finished rounds (0 to 1), for display by another process; may be null.
  std::atomic<double>* share_done = nullptr;
  std::shared_ptr<live_view> live{}; ///< Receives the progress of the run; may be null.
  bool measures_actors = false;      ///< true: measures mailbox lengths and processing times of actors, for `live`.
  accuracy_drawing draw_accuracy{};  ///< Draws accuracy.svg; null: no drawing.
  /// Receives warnings about the inputs, before `live` shows the run's folder; null: the run prints them.
  diagnostics* warnings = nullptr;
};

/// Formats <scenario>-<strategy>-s<seed>-<digest8>.
[[nodiscard]] std::string default_run_name(const scenario& settings, const std::string& digest);

/// Loads the data, builds the model, runs the federation and writes the run directory. Fails with diagnostics for bad
/// input, before anything is written. A started run ends with a summary of status "done", "interrupted" or "failed";
/// the `error` of a failed run names client, round and job.
/// @pre no other run in this process
[[nodiscard]] expected<run_summary> run_simulation(const scenario& settings, const run_options& options);

/// Resumes the run in `folder` from its newest intact checkpoint, or from the beginning if there is none. Returns
/// nullopt if the run is done. Fails with diagnostics if the folder is in use, or has a checkpoint of another scenario
/// or version. `out` and `trace` of the options are ignored.
/// @pre no other run in this process
[[nodiscard]] expected<std::optional<run_summary>> resume_simulation(const std::filesystem::path& folder,
                                                                     const run_options& options);

/// Validates a scenario without running it: data files, tasks, partition, model and weights. For `mneme validate`.
/// @param data result of load_data(); null: load it
/// @param warnings receives warnings about valid settings that are probably mistakes; may be null
[[nodiscard]] diagnostics check_against_data(const scenario& settings, const raw_data* data = nullptr,
                                             diagnostics* warnings = nullptr);

} // namespace mneme
