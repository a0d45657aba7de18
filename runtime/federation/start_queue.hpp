/// start_queue: dispatched rounds that are not yet sent to their shards.
#pragma once
#include "runtime/federation/federation_settings.hpp"
#include <algorithm>
namespace mneme {

/// Rounds are sorted by shard on insertion, so that sending them later is cheap.
class start_queue {
public:
  explicit start_queue(std::size_t shards) : waves_(shards) {}
  /// Adds a round. @param ready virtual time at which its download ends
  void add(assignment&& added, virtual_time ready) {
    auto& wave = waves_[shard_of(added.client, waves_.size()).value];
    wave.assignments.push_back(std::move(added));
    wave.ready.push_back(ready);
  }
  /// Removes rounds; ignores ids that are not queued. @param ids ascending
  void erase(const std::vector<assignment_id>& ids) {
    for (auto& wave : waves_)
      erase_of(wave, ids);
  }
  [[nodiscard]] std::size_t size() const {
    std::size_t sum = 0;
    for (const auto& wave : waves_)
      sum += wave.assignments.size();
    return sum;
  }
  /// Total bytes of the start weights, counted once per round.
  [[nodiscard]] std::int64_t weight_bytes() const {
    std::int64_t sum = 0;
    for (const auto& wave : waves_)
      for (const auto& waiting : wave.assignments)
        sum += waiting.in->weights ? waiting.in->weights->bytes() : 0;
    return sum;
  }
  /// Removes and returns all rounds of one shard.
  [[nodiscard]] start_rounds take(shard_id where) {
    auto& wave = waves_.at(where.value);
    start_rounds taken;
    std::swap(taken, wave);
    taken.to = where;
    wave.assignments.reserve(taken.assignments.size()); // the next cohort has a similar size
    wave.ready.reserve(taken.assignments.size());
    return taken;
  }

private:
  static void erase_of(start_rounds& wave, const std::vector<assignment_id>& ids) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < wave.assignments.size(); ++i) {
      if (std::binary_search(ids.begin(), ids.end(), wave.assignments[i].id))
        continue;
      if (kept < i) {
        wave.assignments[kept] = std::move(wave.assignments[i]);
        wave.ready[kept] = wave.ready[i];
      }
      ++kept;
    }
    wave.assignments.resize(kept);
    wave.ready.resize(kept);
  }

  std::vector<start_rounds> waves_; // indexed by shard
};

} // namespace mneme
