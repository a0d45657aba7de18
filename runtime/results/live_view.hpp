/// live_view: what is known of a run while it goes on, for those who look at it from other threads.
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

/// Batches that are ready to run in this process and not yet begun. `asked_by`: "clients", "server" or "proxy".
struct queue_length {
  std::string asked_by{};
  std::int64_t batches = 0;
};

/// How far a run is, and how fast it goes. Rounds count from 1, totals are 0 while they are not known.
struct live_pace {
  std::int64_t rounds = 0, tasks = 0; ///< In total.
  double elapsed_s = 0.0;             ///< Real time since this process began the run.
};

/// A run at a moment.
struct live_run {
  std::filesystem::path folder{}; ///< Empty: no run has begun.
  std::string status{};           ///< "running", and then what summary.json says.
  std::vector<timeline_bin> course{};
  std::vector<evaluation_record> evaluations{};
  live_pace pace{};
  std::int64_t rounds_before = 0;     ///< Done by a process before this one.
  std::int64_t jobs = 0, batches = 0; ///< Since the run began: jobs that ran, and the batches they were fused to.
  std::int64_t workers = 0;
  double busy_seconds = 0.0; ///< All workers together, in this process and on nodes.
  std::vector<node_record> nodes{};
  std::vector<queue_length> queues{};
};

/// Written by the run, which never waits for a reader; read by any thread.
class live_view {
public:
  /// A run begins, or goes on with what it had.
  void began(std::filesystem::path folder, std::int64_t workers, const timeline& course,
             const std::vector<evaluation_record>& evaluations);
  /// @param round the latest, as a bin of its own
  void moved_on(const timeline_bin& round, std::int64_t jobs, std::int64_t batches, double busy_seconds,
                const live_pace& pace = {});
  void evaluated(const evaluation_record& record);
  /// The run has nodes. @param tell called by who reads, on any thread, until the run has ended
  void has_nodes(std::function<std::vector<node_record>()> tell);
  /// The same of queues of batches.
  void has_queues(std::function<std::vector<queue_length>()> tell);
  void ended(const std::string& status);
  /// Nothing more will come, from this run or another: who waits is woken.
  void close();

  [[nodiscard]] live_run now() const;
  /// Grows with every change.
  [[nodiscard]] std::uint64_t version() const;
  /// Waits until there is a later version, for at most `limit`. Returns the version; `version` if nothing has changed.
  [[nodiscard]] std::uint64_t wait_beyond(std::uint64_t version, std::chrono::milliseconds limit) const;
  /// Waits until it is closed, for at most `limit`.
  void wait_closed(std::chrono::milliseconds limit) const;
  [[nodiscard]] bool is_closed() const;

private:
  template <class Change>
  void change(Change apply);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  live_run run_; // with nodes once it has ended
  std::function<std::vector<node_record>()> tell_nodes_;
  std::function<std::vector<queue_length>()> tell_queues_;
  timeline course_;
  std::uint64_t version_ = 0;
  bool closed_ = false;
};

} // namespace mneme
