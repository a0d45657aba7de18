/// batch_lines: batches that shards have released and nobody has begun.
#pragma once
#include "actors/protocol/interfaces.hpp"
#include <deque>
#include <mutex>
#include <optional>
namespace mneme {

/// A batch with all that it takes to run it on any thread.
struct ready_batch {
  shard_actor owner{};
  composition ids{};
  batch what{};
};

/// One line per shard, in the order in which its batches should run. Threads that run batches by themselves take them
/// without a message: who runs a batch never changes its bits. Safe to use from several threads.
class batch_lines {
public:
  explicit batch_lines(std::size_t shards) : lines_(shards) {}
  void put(shard_id whose, std::vector<ready_batch> all);
  /// The first of one's own.
  [[nodiscard]] std::optional<ready_batch> own(shard_id whose);
  /// The first of whoever has most, for a thread that has nothing left to do.
  [[nodiscard]] std::optional<ready_batch> of_others();

private:
  std::mutex mutex_;
  std::vector<std::deque<ready_batch>> lines_;
};

} // namespace mneme
