/// live_view: state of a running run, for readers on other threads.
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

/// Number of batches that are ready in this process and not started. `asked_by`: "clients", "server" or "proxy".
struct queue_length {
  std::string asked_by{};
  std::int64_t batches = 0;
};

/// Progress and speed of a run. Rounds count from 1; totals are 0 while unknown.
struct live_pace {
  std::int64_t rounds = 0, tasks = 0; ///< In total.
  double elapsed_s = 0.0;             ///< Real time since this process started the run.
};

/// Snapshot of a run.
struct live_run {
  std::filesystem::path folder{}; ///< Empty if no run has started.
  std::string status{};           ///< "running", and then what summary.json says.
  std::vector<timeline_bin> course{};
  std::vector<evaluation_record> evaluations{};
  live_pace pace{};
  std::int64_t rounds_before = 0;     ///< Done by earlier processes.
  std::int64_t jobs = 0, batches = 0; ///< Jobs run since the start, and their fused batches.
  std::int64_t workers = 0;
  double busy_seconds = 0.0; ///< Sum over all workers, in this process and on nodes.
  std::vector<node_record> nodes{};
  std::vector<queue_length> queues{};
};

/// Written by the run, which never waits for readers. Readable from any thread.
class live_view {
public:
  /// A run starts or resumes.
  void began(std::filesystem::path folder, std::int64_t workers, const timeline& course,
             const std::vector<evaluation_record>& evaluations);
  /// @param round the latest round, as a bin of its own
  void moved_on(const timeline_bin& round, std::int64_t jobs, std::int64_t batches, double busy_seconds,
                const live_pace& pace = {});
  void evaluated(const evaluation_record& record);
  /// Sets the source of node records. @param tell called by readers on any thread until the run has ended
  void has_nodes(std::function<std::vector<node_record>()> tell);
  /// Sets the source of queue lengths; called likewise.
  void has_queues(std::function<std::vector<queue_length>()> tell);
  void ended(const std::string& status);
  /// Ends all updates and wakes all waiting readers.
  void close();

  [[nodiscard]] live_run now() const;
  /// Increases with every change.
  [[nodiscard]] std::uint64_t version() const;
  /// Waits up to `limit` for a later version. Returns the current version.
  [[nodiscard]] std::uint64_t wait_beyond(std::uint64_t version, std::chrono::milliseconds limit) const;
  /// Waits up to `limit` for close().
  void wait_closed(std::chrono::milliseconds limit) const;
  [[nodiscard]] bool is_closed() const;

private:
  template <class Change>
  void change(Change apply);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  live_run run_; // without nodes after its end
  std::function<std::vector<node_record>()> tell_nodes_;
  std::function<std::vector<queue_length>()> tell_queues_;
  timeline course_;
  std::uint64_t version_ = 0;
  bool closed_ = false;
};

} // namespace mneme
