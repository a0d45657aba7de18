#include "actors/nodes/shard_map.hpp"
#include <algorithm>
namespace mneme {
namespace {

constexpr shard_location local{.where = shard_location::kind::local};
constexpr shard_location at_node(std::uint32_t number) { return {.where = shard_location::kind::node, .node = number}; }

} // namespace

shard_map::shard_map(std::size_t shards, std::int64_t local_workers, bool is_local_fallback)
    : preferred_(shards), places_(shards), local_workers_(local_workers), is_local_fallback_(is_local_fallback) {
  choose_preferred();
}

void shard_map::choose_preferred() {
  std::vector<shard_location> host_of_worker(static_cast<std::size_t>(local_workers_), local);
  for (std::uint32_t n = 0; n < nodes_.size(); ++n)
    if (nodes_[n].is_connected && !nodes_[n].is_leaving)
      host_of_worker.insert(host_of_worker.end(), static_cast<std::size_t>(nodes_[n].workers), at_node(n));
  for (std::size_t s = 0; s < preferred_.size(); ++s)
    preferred_[s] =
        host_of_worker.empty() ? shard_location{} : host_of_worker[s * host_of_worker.size() / preferred_.size()];
}

void shard_map::join(std::uint32_t node, std::int64_t workers) {
  nodes_.at(node) = {.workers = workers, .is_connected = true};
  choose_preferred();
}

void shard_map::leave(std::uint32_t node) {
  nodes_.at(node).is_leaving = true; // the preferences of all shards stay, so that shards on other nodes keep their
                                     // hosts
}

std::vector<shard_id> shard_map::on_node_lost(std::uint32_t node) {
  nodes_.at(node).is_connected = false;
  std::vector<shard_id> orphaned;
  for (std::uint32_t s = 0; s < places_.size(); ++s)
    if (places_[s] == at_node(node)) {
      places_[s] = {};
      orphaned.push_back({s});
    }
  return orphaned;
}

bool shard_map::hosts_shards(std::uint32_t node) const {
  return std::find(places_.begin(), places_.end(), at_node(node)) != places_.end();
}

bool shard_map::is_available(const shard_location& host) const {
  return host == local ||
         (host.where == shard_location::kind::node && nodes_[host.node].is_connected && !nodes_[host.node].is_leaving);
}

/// Host with the fewest shards per worker, the first of equals; nullopt if there is no host.
std::optional<shard_location> shard_map::least_loaded() const {
  struct load {
    shard_location host{};
    std::int64_t shards = 0, workers = 0;
  };
  std::vector<load> loads;
  if (local_workers_ > 0)
    loads.push_back({.host = local, .workers = local_workers_});
  for (std::uint32_t n = 0; n < nodes_.size(); ++n)
    if (is_available(at_node(n)))
      loads.push_back({.host = at_node(n), .workers = nodes_[n].workers});
  for (auto& one : loads)
    one.shards = std::count(places_.begin(), places_.end(), one.host);
  const auto best = std::min_element(loads.begin(), loads.end(), [](const load& a, const load& b) {
    return a.shards * b.workers < b.shards * a.workers;
  });
  return best == loads.end() ? std::nullopt : std::optional(best->host);
}

shard_location shard_map::host_for(shard_id shard) const {
  if (const auto& preferred = preferred_[shard.value]; is_available(preferred))
    return preferred;
  if (const auto host = least_loaded())
    return *host;
  return is_local_fallback_ ? local : shard_location{};
}

std::vector<shard_id> shard_map::assign_orphaned_shards() {
  std::vector<shard_id> placed;
  for (std::uint32_t s = 0; s < places_.size(); ++s)
    if (places_[s].where == shard_location::kind::unassigned)
      if (places_[s] = host_for({s}); places_[s].where != shard_location::kind::unassigned)
        placed.push_back({s});
  return placed;
}

bool shard_map::return_to_preferred(shard_id shard) {
  auto& place = places_.at(shard.value);
  const auto& preferred = preferred_[shard.value];
  const bool must_move = place.where == shard_location::kind::node && nodes_[place.node].is_leaving;
  if (!must_move && (place == preferred || !is_available(preferred)))
    return false;
  place = host_for(shard);
  return true;
}

} // namespace mneme
