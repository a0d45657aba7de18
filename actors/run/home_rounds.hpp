/// home_rounds: computes rounds of clients in the run's own process that nodes compute as well, one after the other.
#pragma once
#include "actors/protocol/messages.hpp"
#include "actors/protocol/run_context.hpp"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
namespace mneme {

class executor;

/// On a thread of its own, which begins with the first of them. What each round asks for and comes to is what its shard
/// would report. Safe to use from several threads.
class home_rounds {
public:
  /// @param tell takes what has come, on the thread
  home_rounds(run_context_ref run, std::function<void(home_report)> tell);
  ~home_rounds(); ///< Waits for the slice of a program that is at work, and for a job.
  home_rounds(const home_rounds&) = delete;
  home_rounds& operator=(const home_rounds&) = delete;
  void compute(assignment given);

private:
  void run(const std::stop_token& stop);
  void compute(assignment given, executor& on, const std::stop_token& stop);

  run_context_ref run_;
  std::function<void(home_report)> tell_;
  std::mutex mutex_; // guards what follows
  std::condition_variable_any changed_;
  std::deque<assignment> waiting_;
  std::jthread thread_; // last: it ends before what it uses
};

} // namespace mneme
