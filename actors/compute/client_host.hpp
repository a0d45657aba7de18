/// client_host: interface through which a shard runs its clients.
#pragma once
#include "runtime/method/client_round_runner.hpp"
#include <memory>
namespace mneme {

/// Client with an assignment. Each of its turns ends with a call of shard::on_round_progress().
class client_handle {
public:
  virtual ~client_handle() = default;
  /// Passes the results of the client's jobs to the client, which continues with the next run_turns().
  virtual void resume(outcomes results) = 0;
  /// Ends the client, at the latest in the next run_turns(). shard::on_round_progress() is not called.
  virtual void abandon() = 0;
};

class client_host {
public:
  virtual ~client_host() = default;
  /// Creates a client. Its first turn runs with the next run_turns().
  [[nodiscard]] virtual std::unique_ptr<client_handle> start(assignment assigned) = 0;
  /// Runs all started or resumed clients to their next stage or their end, on the calling thread.
  virtual void run_turns() = 0;
};

} // namespace mneme
