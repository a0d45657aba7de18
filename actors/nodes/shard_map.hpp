/// shard_map: assignment of shards to nodes.
#pragma once
#include "runtime/base/ids.hpp"
#include <optional>
#include <vector>
namespace mneme {

/// Host of a shard: a node by its number, the run's own process, or none.
struct shard_place {
  enum class kind : std::uint8_t { nowhere, here, node };
  kind where = kind::nowhere;
  std::uint32_t node = 0;
  bool operator==(const shard_place&) const = default;
};

/// Every node gets a contiguous range of shards, in proportion to its workers; these are the shards that prefer it. If
/// a node disconnects, its shards are orphaned and move to the least loaded node. A shard returns to its preferred node
/// once that node is connected and the shard is idle. A value type: no threads, no I/O.
class shard_map {
public:
  /// @param workers of each node @param stays_here without nodes, shards are hosted locally; otherwise they wait
  shard_map(std::size_t shards, std::vector<std::int64_t> workers, bool stays_here);

  [[nodiscard]] shard_place place_of(shard_id shard) const { return places_.at(shard.value); }
  [[nodiscard]] bool is_there(std::uint32_t node) const { return nodes_.at(node).is_there; }
  /// Removes a lost node. Returns its shards, which have no host now.
  [[nodiscard]] std::vector<shard_id> lose(std::uint32_t node);
  /// A node is ready. Idle shards move to it if it is new or its number of workers has changed.
  void find(std::uint32_t node, std::int64_t workers);
  /// Adds a node that is not connected yet.
  void add() { nodes_.push_back({.workers = 0, .is_there = false}); }
  /// Removes a node from the run for good; idle shards no longer prefer it. @pre it is lost
  void dismiss(std::uint32_t node);
  /// Assigns orphaned shards to hosts, if possible. Returns the assigned shards.
  [[nodiscard]] std::vector<shard_id> place_homeless();
  /// Moves an idle shard to its preferred host. Returns whether the host changes.
  [[nodiscard]] bool bring_home(shard_id shard);

private:
  struct known_node {
    std::int64_t workers = 1; // 0: not part of the run
    bool is_there = true;
  };
  void choose_homes();
  [[nodiscard]] std::optional<std::uint32_t> least_burdened() const;

  std::vector<known_node> nodes_;
  std::vector<std::uint32_t> homes_; // preferred node, by shard
  std::vector<shard_place> places_;
  bool stays_here_;
};

} // namespace mneme
