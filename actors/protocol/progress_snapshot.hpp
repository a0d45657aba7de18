/// progress_snapshot: how far a run is between two evaluations.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/virtual_clock.hpp"
namespace mneme {

/// What the recorder knows between two evaluations.
struct progress_snapshot {
  task_id task{};
  round_id round{};
  std::int64_t tasks = 0, rounds = 0; ///< Of the whole run; rounds may grow when a method sets its own.
  virtual_time at{};
  std::int64_t in_flight = 0, client_rounds = 0;
};

} // namespace mneme
