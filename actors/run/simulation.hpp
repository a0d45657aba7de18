/// simulation: runs one scenario from start to end; what `mneme run` and `mneme resume` call.
#pragma once
#include "actors/run/node_list.hpp"
#include "actors/run/progress.hpp"
#include "runtime/results/run_directory.hpp"
#include "runtime/settings/scenario.hpp"
#include "runtime/transport/node_address.hpp"
#include "runtime/transport/tls.hpp"
#include <atomic>
namespace mneme {

struct raw_data;
class live_view;

struct run_options {
  std::filesystem::path out{}; ///< Empty: runs/<scenario>-<strategy>-s<seed>-<digest8>.
  std::int64_t threads = 0;    ///< CAF threads, and workers where worker.count is 0; 0: one per core.
  progress_style style = progress_style::lines;
  bool trace = false;
  /// What is delivered in this round, counted from 1, and the model after it go to values/round_N.safetensors; 0: of
  /// none.
  std::int64_t values_round = 0;
  /// Set to 1 by the first SIGINT or SIGTERM: the run finishes the event it is at, takes a checkpoint and ends as
  /// interrupted.
  const std::atomic<int>* interrupts = nullptr;
  /// Interrupts the run by itself after so many events, wherever it stands; 0: never.
  std::int64_t events_max = 0;
  /// Results that are known and not delivered go into checkpoints up to here; more are computed again, which costs
  /// nothing before a crash.
  byte_size stored_results_max{std::int64_t{16} << 20};
  /// What load_data() would give for the scenario, so that runs of forked processes share it; null: it is loaded.
  std::shared_ptr<const raw_data> data{};
  /// Nodes that host the shards; empty: this process does.
  std::vector<node_address> nodes{};
  /// Asked several times a second: the nodes as they are named now, where that was asked for since the last time, or
  /// why it cannot be told; null: they stay as they are.
  renamed_nodes_function renamed_nodes{};
  tls_files tls{}; ///< For nodes that are not on the loopback.
  /// Kept at the share of the rounds that is done, for another process that shows it; may be null.
  std::atomic<double>* share_done = nullptr;
  std::shared_ptr<live_view> live{}; ///< Told what becomes of the run; may be null.
  accuracy_drawing draw_accuracy{};  ///< Draws accuracy.svg; null: the run has no picture.
};

/// <scenario>-<strategy>-s<seed>-<digest8>
[[nodiscard]] std::string default_run_name(const scenario& settings, const std::string& digest);

/// Loads the data, builds the model, runs the federation and writes the run directory. Fails with
/// diagnostics for bad input, before anything is written; a run that starts ends with its summary,
/// whose status is "done", "failed" (`error` names client, round and job) or "interrupted".
/// @pre one call at a time in a process
[[nodiscard]] expected<run_summary> run_simulation(const scenario& settings, const run_options& options);

/// Goes on with the run in `folder` from its newest whole checkpoint, or from the beginning if there is none; nothing
/// if it is done. Fails with diagnostics if it may not: a folder in use, a checkpoint of another scenario or version.
/// `out` and `trace` of the options are those of the run.
/// @pre one call at a time in a process
[[nodiscard]] expected<std::optional<run_summary>> resume_simulation(const std::filesystem::path& folder,
                                                                     const run_options& options);

/// What can be checked without running: data files, tasks, partition, model and weights. For `mneme validate`.
/// @param data what load_data() would give; null: it is loaded
/// @param warnings receives what is well and can hardly be meant; may be null
[[nodiscard]] diagnostics check_against_data(const scenario& settings, const raw_data* data = nullptr,
                                             diagnostics* warnings = nullptr);

} // namespace mneme
