/// batch_queues: batches that are ready to run and not yet begun, for all threads that compute.
#pragma once
#include "runtime/federation/wave.hpp"
#include <deque>
#include <mutex>
#include <optional>
namespace mneme {

/// Workers count from 0; the first one may share its thread with actors that do not compute.
using worker_id = id_of<struct worker_tag>;

/// A batch with all that it takes to run it on any thread.
struct ready_batch {
  std::size_t queue = 0; ///< Who is given its outcomes: the shard of that number, or a party.
  composition ids{};
  std::vector<job> jobs{};      ///< In the order of `ids`.
  double multiplications = 0.0; ///< About how many it takes; it decides who is woken for it, nothing else.
};

/// A line of batches for each shard, and one for each party. It is the one thing that threads share and
/// change: a batch passes from thread to thread without a message, and who runs it never changes its bits. Safe to use
/// from several threads.
class batch_queues {
public:
  /// @param hosts the first so many workers host the shards in turn
  batch_queues(std::size_t shards, std::size_t workers, std::size_t hosts);
  /// Adds to the end of a line. Answers with the workers that have to be told, because they wait for work: whoever
  /// hosts the line, then as many others as the batches keep busy, the last of the workers first.
  [[nodiscard]] std::vector<worker_id> put(std::size_t line, std::vector<ready_batch> batches);
  /// The next batch for a worker: of its own shards', then of the longest other line. Nothing: the worker counts as
  /// waiting from now on, until put() names it.
  [[nodiscard]] std::optional<ready_batch> take(worker_id who);
  [[nodiscard]] std::size_t queue_of(party_id who) const noexcept { return shards_ + index_of(who); }
  /// Whose line it is, as a number in `parties`; null: a shard's.
  [[nodiscard]] std::optional<std::size_t> party_of(std::size_t line) const noexcept {
    return line < shards_ ? std::nullopt : std::optional(line - shards_);
  }
  /// Who hosts a shard, and runs short jobs of the parties.
  [[nodiscard]] worker_id host_of(std::size_t line) const noexcept;
  /// Batches that wait: of all shards, and of each party.
  struct lengths {
    std::size_t clients = 0;
    std::array<std::size_t, mneme::parties.size()> parties{};
    bool operator==(const lengths&) const = default;
  };
  [[nodiscard]] lengths waiting() const;

private:
  using batch_queue = std::deque<ready_batch>;
  /// The longest line that is hosted by `host`, or of all where there is none; null: they are empty.
  [[nodiscard]] batch_queue* longest(std::optional<worker_id> host);

  const std::size_t hosts_, shards_;
  mutable std::mutex mutex_;
  std::vector<batch_queue> queues_; // the parties' are the last ones
  std::vector<bool> waits_;         // by worker
};

} // namespace mneme
