/// Messages between the federation and its shards while virtual time waits for results.
#pragma once
#include "runtime/base/virtual_clock.hpp"
#include "runtime/federation/parties.hpp"
#include "runtime/method/client_run.hpp"
#include "runtime/population/population.hpp"
#include <optional>
#include <vector>
namespace mneme {

/// Client rounds that start at shard `to`. `ready`: end of each download in virtual time. `at_once`: the shard releases
/// the first jobs itself.
struct start_rounds { // federation -> shard
  shard_id to{};
  std::vector<assignment> assignments{};
  std::vector<virtual_time> ready{};
  bool at_once = false;
};

/// One stage of one client's round, parked at the shard.
struct issued_job {
  job_id id{};
  fuse_key key{};
  std::int64_t rows = 0;
  std::int64_t bytes = 0;   ///< Size of its result.
  std::int64_t width = 1;   ///< Number of such jobs in a fused batch.
  virtual_duration takes{}; ///< Virtual duration on the client's device.
};

/// Work of the job on the client's device.
[[nodiscard]] inline device_work device_work_of(const issued_job& job) noexcept {
  return {.rows = job.rows, .trains = trains(job.key), .begins_round = job.id.stage == 0};
}

struct finished_round {
  assignment_id id{};
  client_result result{};
  party_bytes bytes{}; ///< Size of its message to each party, at wire width.
};

/// Jobs of one batch, ascending.
using composition = std::vector<job_id>;

/// Progress of started rounds and released jobs. Reports of different shards arrive in any order.
struct wave_report { // shard -> federation
  shard_id from{};
  std::vector<issued_job> issued{};                   ///< Ascending ids.
  std::optional<std::vector<composition>> released{}; ///< Set if `issued` already runs, in these batches.
  std::vector<finished_round> finished{};             ///< Ascending ids.
  std::vector<round_failure> failed{};                ///< Ascending ids.
  bool last = true;                                   ///< False if more reports of this wave follow.
};

/// Runs exactly these batches now.
struct release { // federation -> shard
  shard_id to{};
  std::vector<composition> batches{};
};

/// Discards rounds that were started and have not finished.
struct abandon { // federation -> shard
  shard_id to{};
  std::vector<assignment_id> assignments{};
};

} // namespace mneme
