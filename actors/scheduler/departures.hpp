/// departures: rounds that are dispatched and not yet at their shards.
#pragma once
#include "actors/protocol/messages.hpp"
#include <algorithm>
namespace mneme {

/// The shard that hosts a client.
inline shard_id shard_of(client_id who, std::size_t shards) { return {who.value % static_cast<std::uint32_t>(shards)}; }

/// Sorted by shard as they come, because virtual time waits while they are handed over.
class departures {
public:
  explicit departures(std::size_t shards) : waves_(shards) {}
  /// @param ready when its download is over
  void add(assignment one, virtual_time ready) {
    auto& wave = waves_[shard_of(one.client, waves_.size()).value];
    wave.all.push_back(std::move(one));
    wave.ready.push_back(ready);
  }
  /// @param ids ascending; those that are not here are nothing to it
  void erase(const std::vector<assignment_id>& ids) {
    for (auto& wave : waves_) {
      std::size_t kept = 0;
      for (std::size_t i = 0; i < wave.all.size(); ++i) {
        if (std::binary_search(ids.begin(), ids.end(), wave.all[i].id))
          continue;
        if (kept < i) {
          wave.all[kept] = std::move(wave.all[i]);
          wave.ready[kept] = wave.ready[i];
        }
        ++kept;
      }
      wave.all.resize(kept);
      wave.ready.resize(kept);
    }
  }
  [[nodiscard]] std::size_t size() const {
    std::size_t sum = 0;
    for (const auto& wave : waves_)
      sum += wave.all.size();
    return sum;
  }
  /// Of the weights from which they start, each counted by itself.
  [[nodiscard]] std::int64_t weight_bytes() const {
    std::int64_t sum = 0;
    for (const auto& wave : waves_)
      for (const auto& one : wave.all)
        sum += one.in->weights ? one.in->weights->bytes() : 0;
    return sum;
  }
  /// All of one shard.
  [[nodiscard]] start_rounds take(shard_id where) {
    auto& wave = waves_.at(where.value);
    start_rounds taken;
    std::swap(taken, wave);
    wave.all.reserve(taken.all.size()); // the next cohort is about as large
    wave.ready.reserve(taken.all.size());
    return taken;
  }

private:
  std::vector<start_rounds> waves_;
};

} // namespace mneme
