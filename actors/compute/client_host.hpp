/// client_host: how a shard lets its clients run, whatever hosts them.
#pragma once
#include "runtime/method/client_run.hpp"
#include <memory>
namespace mneme {

/// A client at work on one assignment. Each of its turns ends with an answer to its shard (shard::answered).
class hosted_client {
public:
  virtual ~hosted_client() = default;
  /// Its outcomes have come: it runs on with the next run_turns().
  virtual void resume(outcomes results) = 0;
  /// It was started and will not finish: it ends without an answer, by the next run_turns().
  virtual void abandon() = 0;
};

class client_host {
public:
  virtual ~client_host() = default;
  /// The client's first turn comes with the next run_turns().
  [[nodiscard]] virtual std::unique_ptr<hosted_client> start(assignment assigned) = 0;
  /// Runs all clients that were started or resumed to their next stage or to their end, on the calling thread.
  virtual void run_turns() = 0;
};

} // namespace mneme
