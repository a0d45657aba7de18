/// batch_queues: batches that are ready to run, shared by all threads that compute.
#pragma once
#include "runtime/federation/wave.hpp"
#include <deque>
#include <mutex>
#include <optional>
namespace mneme {

/// Number of a worker, from 0. Worker 0 may share its thread with actors that do not compute.
using worker_id = id_of<struct worker_tag>;

/// A batch with everything that a thread needs to run it.
struct ready_batch {
  std::size_t queue = 0; ///< Queue of the shard or party that receives the results.
  composition ids{};
  std::vector<job> jobs{};      ///< In the order of `ids`.
  double multiplications = 0.0; ///< Estimated number; used only to choose how many workers to wake.
};

/// One queue per shard and per party; thread-safe. The queues are the only mutable state that threads share: workers
/// take batches without a message. The result of a batch is bit-identical on every thread.
class batch_queues {
public:
  /// @param hosts the workers 0 to `hosts` - 1 host the shards round-robin
  batch_queues(std::size_t shards, std::size_t workers, std::size_t hosts);
  /// Appends batches to queue `line`. Returns the idle workers to wake: first the host of the queue, then as many
  /// others as the batches can keep busy, highest number first.
  [[nodiscard]] std::vector<worker_id> put(std::size_t line, std::vector<ready_batch> batches);
  /// Removes the next batch for a worker: from its own shards' queues, else from the longest other queue. Returns
  /// nullopt if all are empty; the worker then counts as idle until put() returns it.
  [[nodiscard]] std::optional<ready_batch> take(worker_id worker);
  [[nodiscard]] std::size_t queue_of(party_id who) const noexcept { return shards_ + index_of(who); }
  /// Index of a queue's party in `parties`; nullopt for a shard's queue.
  [[nodiscard]] std::optional<std::size_t> party_of(std::size_t line) const noexcept {
    return line < shards_ ? std::nullopt : std::optional(line - shards_);
  }
  /// Worker that hosts the shard of a queue. For a party's queue: the worker that runs the party's short jobs.
  [[nodiscard]] worker_id host_of(std::size_t line) const noexcept;
  /// Numbers of waiting batches: of all shards together, and of each party.
  struct lengths {
    std::size_t clients = 0;
    std::array<std::size_t, mneme::parties.size()> parties{};
    bool operator==(const lengths&) const = default;
  };
  [[nodiscard]] lengths waiting() const;

private:
  using batch_queue = std::deque<ready_batch>;
  /// Returns the longest queue hosted by `host`, or the longest of all if `host` is nullopt. Returns null if all are
  /// empty.
  [[nodiscard]] batch_queue* longest(std::optional<worker_id> host);

  const std::size_t hosts_, shards_;
  mutable std::mutex mutex_;
  std::vector<batch_queue> queues_; // shards first, then parties
  std::vector<bool> waits_;         // indexed by worker; true: idle
};

} // namespace mneme
