/// shard_map: which node hosts which shard, as a value.
#pragma once
#include "runtime/base/ids.hpp"
#include <optional>
#include <vector>
namespace mneme {

/// Who hosts a shard: a node by its number, the run's own process, or nobody.
struct shard_place {
  enum class kind : std::uint8_t { nowhere, here, node };
  kind where = kind::nowhere;
  std::uint32_t node = 0;
  bool operator==(const shard_place&) const = default;
};

/// Shards are spread over nodes by their workers, neighbours together. A shard of a lost node goes to the node that is
/// least burdened, and comes home when its own node is back and the shard is idle.
class shard_map {
public:
  /// @param workers of each node @param stays_here where no node is left, shards are hosted here; else they wait
  shard_map(std::size_t shards, std::vector<std::int64_t> workers, bool stays_here);

  [[nodiscard]] shard_place place_of(shard_id shard) const { return places_.at(shard.value); }
  [[nodiscard]] bool is_there(std::uint32_t node) const { return nodes_.at(node).is_there; }
  /// Shards that have no host any more.
  [[nodiscard]] std::vector<shard_id> lose(std::uint32_t node);
  /// The node can be given shards. Idle ones come to it if it was not known, or has other workers than before.
  void find(std::uint32_t node, std::int64_t workers);
  /// Another node, which is not there yet.
  void add() { nodes_.push_back({.workers = 0, .is_there = false}); }
  /// The node has no part in the run any more, and idle shards leave it. @pre it is lost
  void dismiss(std::uint32_t node);
  /// Shards without a host for which there is one now; they are there when it returns.
  [[nodiscard]] std::vector<shard_id> place_homeless();
  /// Brings an idle shard to where it belongs; true if that is another place.
  [[nodiscard]] bool bring_home(shard_id shard);

private:
  struct known_node {
    std::int64_t workers = 1; // 0: it has no part in the run
    bool is_there = true;
  };
  void choose_homes();
  [[nodiscard]] std::optional<std::uint32_t> least_burdened() const;

  std::vector<known_node> nodes_;
  std::vector<std::uint32_t> homes_; // by shard
  std::vector<shard_place> places_;
  bool stays_here_;
};

} // namespace mneme
