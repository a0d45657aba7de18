/// replayed_rounds: recomputes sampled client rounds of nodes in the run's own process (worker.verify_share).
#pragma once
#include "actors/protocol/messages.hpp"
#include "actors/protocol/run_context.hpp"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
namespace mneme {

class executor;

/// Computes one round after another on its own thread, which starts with the first round. Thread-safe.
class replayed_rounds {
public:
  /// @param report receives the outcome of each round, on the computing thread
  replayed_rounds(run_context_ref run, std::function<void(replay_report)> report);
  ~replayed_rounds(); ///< Waits for the running job.
  replayed_rounds(const replayed_rounds&) = delete;
  replayed_rounds& operator=(const replayed_rounds&) = delete;
  void compute(assignment given);

private:
  void run(const std::stop_token& stop);
  void compute(assignment given, executor& on, const std::stop_token& stop);

  run_context_ref run_;
  std::function<void(replay_report)> report_;
  std::mutex mutex_; // guards the following members
  std::condition_variable_any changed_;
  std::deque<assignment> waiting_;
  std::jthread thread_; // last, so that it ends before the members it uses
};

} // namespace mneme
