/// wave: messages between the federation and its shards while virtual time waits for results.
#pragma once
#include "runtime/base/virtual_clock.hpp"
#include "runtime/federation/parties.hpp"
#include "runtime/method/client_round_runner.hpp"
#include "runtime/population/population.hpp"
#include <optional>
#include <vector>
namespace mneme {

/// Starts client rounds at shard `to`. `ready`: virtual time at which each download ends. `at_once`: the shard runs the
/// first jobs without waiting for a release.
struct start_rounds { // federation -> shard
  shard_id to{};
  std::vector<assignment> assignments{};
  std::vector<virtual_time> ready{};
  bool at_once = false;
};

/// One job of a client's current stage, parked at the shard.
struct issued_job {
  job_id id{};
  fuse_key key{};
  std::int64_t rows = 0;
  std::int64_t bytes = 0;              ///< Size of its result in bytes.
  std::int64_t width = 1;              ///< Number of jobs of this kind in a fused batch.
  virtual_duration compute_duration{}; ///< Virtual duration on the client's device.
};

/// The job's work, from which a device model computes its duration.
[[nodiscard]] inline device_work device_work_of(const issued_job& job) noexcept {
  return {.rows = job.rows, .trains = trains(job.key), .begins_round = job.id.stage == 0};
}

struct finished_round {
  assignment_id id{};
  client_result result{};
  party_bytes bytes{}; ///< Size of the message to each party in wire format.
};

/// Job ids of one batch, ascending.
using composition = std::vector<job_id>;

/// Reports progress of started rounds and released jobs. Reports of different shards arrive in any order.
struct wave_report { // shard -> federation
  shard_id from{};
  std::vector<issued_job> issued{};                   ///< In ascending order of ids.
  std::optional<std::vector<composition>> released{}; ///< Batches of `issued`, if these jobs are already running.
  std::vector<finished_round> finished{};             ///< In ascending order of ids.
  std::vector<round_failure> failed{};                ///< In ascending order of ids.
  bool last = true;                                   ///< False if more reports of this wave follow.
};

/// Runs exactly these batches now.
struct release { // federation -> shard
  shard_id to{};
  std::vector<composition> batches{};
};

/// Discards started rounds that have not finished.
struct abandon { // federation -> shard
  shard_id to{};
  std::vector<assignment_id> assignments{};
};

} // namespace mneme
