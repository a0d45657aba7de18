/// run_handle: a run in this process, on a thread of its own, as Python watches it.
#pragma once
#include "actors/run/simulation.hpp"
#include "runtime/results/live_view.hpp"
#include "runtime/scenario/read.hpp"
#include <nanobind/nanobind.h>
#include <optional>
#include <thread>
namespace mneme {

namespace nb = nanobind;

/// What Python says of a run besides its scenario.
struct run_description {
  std::filesystem::path scenario{}; ///< A scenario file; or a run directory, to go on with.
  bool resumes = false;
  overrides settings{};
  std::filesystem::path out{}; ///< Empty: below runs/.
  std::string name{};          ///< The scenario's, where it has no file; empty: the file's.
  std::int64_t threads = 0;
  progress_style style = progress_style::silent;
  bool trace = false;
  std::string nodes{}; ///< "A:PORT,B:PORT" or "@FILE"; empty: this process computes.
  tls_files tls{};
};

/// One at a time in a process. All members are called under the GIL, which waiting gives up.
class run_handle {
public:
  /// Begins. Throws std::runtime_error where another run goes on in this process.
  explicit run_handle(run_description request);
  ~run_handle(); ///< Interrupts, and waits.
  run_handle(const run_handle&) = delete;
  run_handle& operator=(const run_handle&) = delete;

  /// True once it is over; waits for at most so long.
  [[nodiscard]] bool wait(double seconds);
  /// Finishes the event that it is at, takes a checkpoint and ends.
  void interrupt() { interrupts_.store(1); }
  /// JSON of the evaluations of this process since the last call.
  [[nodiscard]] std::vector<std::string> evaluations();
  /// (rounds done, rounds, tasks, seconds): how far it is.
  [[nodiscard]] nb::tuple pace() const;
  /// Rounds that were done when it began: of a run that goes on.
  [[nodiscard]] std::int64_t rounds_before() const { return live_->now().rounds_before; }
  /// Warnings of the scenario: (where, text).
  [[nodiscard]] const diagnostics& warnings() const { return warnings_; }
  /// Once it is over. Findings of the scenario, where it did not begin;
  [[nodiscard]] const diagnostics& findings() const { return findings_; }
  /// else (status, error, folder, folder to resume from); the folder alone where there was nothing to resume.
  [[nodiscard]] nb::object summary() const;

private:
  void run();
  void begin();

  run_description request_;
  std::shared_ptr<live_view> live_ = std::make_shared<live_view>();
  std::atomic<int> interrupts_{0};
  std::atomic<bool> is_over_{false};
  std::uint64_t version_ = 0;
  std::size_t told_ = 0; // evaluations
  diagnostics findings_, warnings_;
  std::optional<run_summary> summary_;
  std::string failure_; // what was thrown
  std::thread thread_;  // last: it uses the others
};

void bind_runs(nb::module_& module);

} // namespace mneme
