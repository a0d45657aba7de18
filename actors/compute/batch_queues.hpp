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
  std::size_t queue = 0; ///< Receiver of its results: a shard's number, or a party.
  composition ids{};
  std::vector<job> jobs{};      ///< In the order of `ids`.
  double multiplications = 0.0; ///< Estimated cost; decides only which workers are woken.
};

/// One queue per shard and per party. This is the only mutable state that threads share: a batch moves between threads
/// without a message, and its bits do not depend on the thread that runs it. Thread-safe.
class batch_queues {
public:
  /// @param hosts number of workers, from 0, that host the shards round-robin
  batch_queues(std::size_t shards, std::size_t workers, std::size_t hosts);
  /// Appends batches to a queue. Returns the idle workers to wake: the host of the queue, then as many others as the
  /// batches can keep busy, highest number first.
  [[nodiscard]] std::vector<worker_id> put(std::size_t line, std::vector<ready_batch> batches);
  /// Removes the next batch for a worker: from its own shards' queues, then from the longest other queue. nullopt: the
  /// worker counts as idle until put() returns it.
  [[nodiscard]] std::optional<ready_batch> take(worker_id who);
  [[nodiscard]] std::size_t queue_of(party_id who) const noexcept { return shards_ + index_of(who); }
  /// Party of a queue, as an index of `parties`; nullopt for a shard's queue.
  [[nodiscard]] std::optional<std::size_t> party_of(std::size_t line) const noexcept {
    return line < shards_ ? std::nullopt : std::optional(line - shards_);
  }
  /// Worker that hosts a shard. For a party: the worker that runs its short jobs.
  [[nodiscard]] worker_id host_of(std::size_t line) const noexcept;
  /// Waiting batches: of all shards together, and of each party.
  struct lengths {
    std::size_t clients = 0;
    std::array<std::size_t, mneme::parties.size()> parties{};
    bool operator==(const lengths&) const = default;
  };
  [[nodiscard]] lengths waiting() const;

private:
  using batch_queue = std::deque<ready_batch>;
  /// Longest queue hosted by `host`, or longest of all if `host` is nullopt. Null: all are empty.
  [[nodiscard]] batch_queue* longest(std::optional<worker_id> host);

  const std::size_t hosts_, shards_;
  mutable std::mutex mutex_;
  std::vector<batch_queue> queues_; // shards first, then parties
  std::vector<bool> waits_;         // idle; by worker
};

} // namespace mneme
