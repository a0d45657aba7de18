/// live_view: state of a run in progress, for readers on other threads.
#pragma once
#include "runtime/results/metrics.hpp"
#include "runtime/results/run_directory.hpp"
#include "runtime/results/timeline.hpp"
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
namespace mneme {

/// Number of batches of one requester that wait for a worker of this process. `asked_by` is "clients", "server" or
/// "proxy".
struct queue_length {
  std::string asked_by{};
  std::int64_t batches = 0;
};

/// Progress and speed of a run. Rounds count from 1; unknown totals are 0.
struct live_pace {
  std::int64_t rounds = 0, tasks = 0; ///< Totals of the run.
  double elapsed_s = 0.0;             ///< Wall-clock time since this process started the run.
};

/// A snapshot of the run.
struct live_run {
  std::filesystem::path folder{}; ///< Empty if no run has started.
  std::string status{};           ///< "running"; after the end, the status in summary.json.
  std::string pending{};          ///< Current step of the preparation; empty once the run has started.
  std::vector<timeline_bin> course{};
  std::vector<evaluation_record> evaluations{};
  live_pace pace{};
  std::int64_t rounds_before = 0;     ///< Rounds completed by earlier processes.
  std::int64_t jobs = 0, batches = 0; ///< Jobs run so far, and the batches in which they ran.
  std::int64_t workers = 0;
  double busy_seconds = 0.0; ///< Busy time of all workers, of this process and of nodes.
  std::vector<node_record> nodes{};
  bool needs_node = false; ///< True: only nodes compute.
  std::vector<queue_length> queues{};
};

/// Current state of a run. The run updates the view and never waits for readers. Any thread may read the view.
class live_view {
public:
  /// Records a step of the preparation. @param pending description of the step, for example "loads the scenario"
  void prepares(std::string pending);
  /// Records that a run starts or resumes.
  void on_run_started(std::filesystem::path folder, std::int64_t workers, const timeline& course,
                      const std::vector<evaluation_record>& evaluations);
  /// Records progress. @param round bin that contains only the latest round
  void on_round(const timeline_bin& round, std::int64_t jobs, std::int64_t batches, double busy_seconds,
                const live_pace& pace = {});
  /// Adds an evaluation.
  void evaluated(const evaluation_record& record);
  /// Sets the source of node records. @param callback called by readers on any thread, until the run ends
  /// @param needs_node true: no worker of the run's process computes
  void has_nodes(std::function<std::vector<node_record>()> callback, bool needs_node = false);
  /// Sets the source of queue lengths. @param callback called by readers on any thread, until the run ends
  void has_queues(std::function<std::vector<queue_length>()> callback);
  /// Sets the source of metrics of actors, in Prometheus' text format.
  /// @param callback called by readers on any thread, until the run ends
  void has_actors(std::function<std::string()> callback);
  /// Records the end of the run. @param status see live_run::status
  void ended(const std::string& status);
  /// Ends all updates and wakes waiting readers.
  void close();

  /// Returns a snapshot.
  [[nodiscard]] live_run now() const;
  /// Metrics of the run's actors in Prometheus' text format; empty without a run.
  [[nodiscard]] std::string actor_metrics() const;
  /// Version number, which every change increases.
  [[nodiscard]] std::uint64_t version() const;
  /// Waits up to `limit` for a version above `version`. Returns the current version.
  [[nodiscard]] std::uint64_t wait_beyond(std::uint64_t version, std::chrono::milliseconds limit) const;
  /// Waits up to `limit` for close().
  void wait_closed(std::chrono::milliseconds limit) const;
  [[nodiscard]] bool is_closed() const;

private:
  template <class Change>
  void change(Change apply);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  live_run run_; // only close() sets its node records
  std::function<std::vector<node_record>()> get_nodes_;
  std::function<std::vector<queue_length>()> get_queues_;
  std::function<std::string()> get_actor_metrics_;
  timeline course_;
  std::uint64_t version_ = 0;
  bool closed_ = false;
};

} // namespace mneme
