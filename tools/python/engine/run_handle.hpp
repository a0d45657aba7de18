/// run_handle: a run in this process, on its own thread, controlled from Python.
#pragma once
#include "actors/run/simulation.hpp"
#include "runtime/results/live_view.hpp"
#include "runtime/scenario/read.hpp"
#include <nanobind/nanobind.h>
#include <optional>
#include <thread>
namespace mneme {

namespace nb = nanobind;

/// Scenario and options of a run.
struct run_description {
  std::filesystem::path scenario{}; ///< Scenario file, or a run directory to resume.
  bool resumes = false;
  overrides settings{};
  std::filesystem::path out{}; ///< Empty: a folder below runs/.
  std::string name{};          ///< Name of a scenario that has no file; empty: the name of the file.
  std::int64_t threads = 0;
  progress_style style = progress_style::silent;
  bool trace = false;
  accept_options accept{};
};

/// Only one run may be active per process. All calls require the GIL, which is released while waiting.
class run_handle {
public:
  /// Starts the run. Throws std::runtime_error if another run is active in this process.
  explicit run_handle(run_description request);
  ~run_handle(); ///< Interrupts the run and waits for its end.
  run_handle(const run_handle&) = delete;
  run_handle& operator=(const run_handle&) = delete;

  /// Waits at most `seconds`. Returns true if the run has ended.
  [[nodiscard]] bool wait(double seconds);
  /// Makes the run finish the current event, write a checkpoint and end.
  void interrupt() { interrupts_.store(1); }
  /// Returns the evaluations of this process since the last call, as JSON.
  [[nodiscard]] std::vector<std::string> evaluations();
  /// Returns (rounds done, rounds, tasks, seconds).
  [[nodiscard]] nb::tuple pace() const;
  /// Number of rounds that were done before this process resumed the run.
  [[nodiscard]] std::int64_t rounds_before() const { return live_->now().rounds_before; }
  /// Warnings about the scenario and its inputs, each with a location and a text. The list is complete once pace() has
  /// a folder.
  [[nodiscard]] const diagnostics& warnings() const { return warnings_; }
  /// Errors of a scenario that could not start; available after the run has ended.
  [[nodiscard]] const diagnostics& findings() const { return findings_; }
  /// Returns (status, error, folder, folder to resume from) of a run that started; only the folder if the run was
  /// already done.
  [[nodiscard]] nb::object summary() const;

private:
  void run();
  void begin();

  run_description request_;
  std::shared_ptr<live_view> live_ = std::make_shared<live_view>();
  std::atomic<int> interrupts_{0};
  std::atomic<bool> is_over_{false};
  std::uint64_t version_ = 0;
  std::size_t told_ = 0; // number of evaluations already returned
  diagnostics findings_, warnings_;
  std::optional<run_summary> summary_;
  std::string failure_; // text of an exception
  std::thread thread_;  // last, because it uses the other members
};

void bind_runs(nb::module_& module);

} // namespace mneme
