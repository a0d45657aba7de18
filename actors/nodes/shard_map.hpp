/// shard_map: assigns shards to nodes and to the run's own process.
#pragma once
#include "runtime/base/ids.hpp"
#include <optional>
#include <vector>
namespace mneme {

/// Host of a shard: a node by its number, the run's own process, or none.
struct shard_location {
  enum class kind : std::uint8_t { unassigned, local, node };
  kind where = kind::unassigned;
  std::uint32_t node = 0;
  bool operator==(const shard_location&) const = default;
};

/// Every host gets a contiguous range of shards, in proportion to its workers; these shards prefer it. The shards of a
/// lost node are orphaned and move to the least loaded host. A shard returns to its preferred host once that host is
/// present and the shard is idle. A value type: no threads, no I/O.
class shard_map {
public:
  /// All shards start without a host.
  /// @param local_workers workers of the run's own process that share the work with nodes; 0: none while there are
  /// nodes
  /// @param is_local_fallback true: the run's own process hosts shards that no node can host; false: they wait
  shard_map(std::size_t shards, std::int64_t local_workers, bool is_local_fallback);

  [[nodiscard]] shard_location location_of(shard_id shard) const { return places_.at(shard.value); }
  [[nodiscard]] bool is_connected(std::uint32_t node) const { return nodes_.at(node).is_connected; }
  [[nodiscard]] bool is_leaving(std::uint32_t node) const { return nodes_.at(node).is_leaving; }
  [[nodiscard]] bool hosts_shards(std::uint32_t node) const;
  /// Adds a node, which is not connected yet.
  void add() { nodes_.push_back({}); }
  /// Marks a node as ready. Shards move to it as they become idle.
  void join(std::uint32_t node, std::int64_t workers);
  /// Marks a node as leaving: it gets no more shards, and its shards move to other hosts as they become idle. Other
  /// shards keep their hosts.
  void leave(std::uint32_t node);
  /// Removes a lost node. Returns its shards, which are now orphaned.
  [[nodiscard]] std::vector<shard_id> on_node_lost(std::uint32_t node);
  /// Assigns each orphaned shard to a host, if there is any. Returns the shards that got one.
  [[nodiscard]] std::vector<shard_id> assign_orphaned_shards();
  /// Moves an idle shard to its preferred host, or away from a leaving node. Returns true if its host changes.
  [[nodiscard]] bool return_to_preferred(shard_id shard);

private:
  struct node_share {
    std::int64_t workers = 0;
    bool is_connected = false, is_leaving = false;
  };
  void choose_preferred();
  [[nodiscard]] bool is_available(const shard_location& host) const;
  /// Best host for a shard; `unassigned` if there is none.
  [[nodiscard]] shard_location host_for(shard_id shard) const;
  [[nodiscard]] std::optional<shard_location> least_loaded() const;

  std::vector<node_share> nodes_;
  std::vector<shard_location> preferred_; // by shard; unassigned: no preference
  std::vector<shard_location> places_;
  std::int64_t local_workers_;
  bool is_local_fallback_;
};

} // namespace mneme
