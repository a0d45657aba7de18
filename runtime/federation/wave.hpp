/// What the federation and its shards tell each other while virtual time waits for real work.
#pragma once
#include "runtime/base/virtual_clock.hpp"
#include "runtime/federation/parties.hpp"
#include "runtime/method/client_run.hpp"
#include "runtime/population/population.hpp"
#include <optional>
#include <vector>
namespace mneme {

/// Rounds of clients that begin at the shard `to`. `ready`: when each one's download is over. `at_once`: the shard
/// releases their first jobs by itself.
struct start_rounds { // federation -> shard
  shard_id to{};
  std::vector<assignment> assignments{};
  std::vector<virtual_time> ready{};
  bool at_once = false;
};

/// One stage of one client, parked at the shard.
struct issued_job {
  job_id id{};
  fuse_key key{};
  std::int64_t rows = 0;
  std::int64_t bytes = 0;   ///< That its outcome will hold.
  std::int64_t width = 1;   ///< How many such jobs make a fused group.
  virtual_duration takes{}; ///< On the client's device.
};

/// What a client's device does for it.
[[nodiscard]] inline device_work device_work_of(const issued_job& job) noexcept {
  return {.rows = job.rows, .trains = trains(job.key), .begins_round = job.id.stage == 0};
}

struct finished_round {
  assignment_id id{};
  client_result result{};
  party_bytes bytes{}; ///< What it sends to each party weighs so much, at wire width.
};

/// The jobs of one batch, ascending.
using composition = std::vector<job_id>;

/// What became of started rounds and released jobs. Reports of several shards come in any order.
struct wave_report { // shard -> federation
  shard_id from{};
  std::vector<issued_job> issued{};                   ///< Ascending id.
  std::optional<std::vector<composition>> released{}; ///< `issued` runs already, in these batches.
  std::vector<finished_round> finished{};             ///< Ascending id.
  std::vector<round_failure> failed{};                ///< Ascending id.
  bool last = true;                                   ///< It is the last of the wave; others go before it.
};

/// Exactly these batches run now.
struct release { // federation -> shard
  shard_id to{};
  std::vector<composition> batches{};
};

/// Rounds that were started and not finished are forgotten.
struct abandon { // federation -> shard
  shard_id to{};
  std::vector<assignment_id> assignments{};
};

} // namespace mneme
