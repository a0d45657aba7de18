#include "actors/nodes/shard_map.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <utility>
namespace mneme {

shard_map::shard_map(std::size_t shards, std::vector<std::int64_t> workers, bool stays_here) : stays_here_(stays_here) {
  for (const auto count : workers)
    nodes_.push_back({.workers = count});
  homes_.resize(shards);
  choose_homes();
  for (const auto home : homes_)
    places_.push_back({.where = shard_place::kind::node, .node = home});
}

/// As before where no node has a part in the run.
void shard_map::choose_homes() {
  std::vector<std::uint32_t> node_of_worker;
  for (std::uint32_t n = 0; n < nodes_.size(); ++n)
    node_of_worker.insert(node_of_worker.end(), static_cast<std::size_t>(nodes_[n].workers), n);
  for (std::size_t s = 0; s < homes_.size() && !node_of_worker.empty(); ++s)
    homes_[s] = node_of_worker[s * node_of_worker.size() / homes_.size()];
}

void shard_map::find(std::uint32_t node, std::int64_t workers) {
  auto& share = nodes_.at(node);
  share.is_there = true;
  if (std::exchange(share.workers, workers) != workers)
    choose_homes();
}

void shard_map::dismiss(std::uint32_t node) {
  auto& left = nodes_.at(node);
  MNEME_CHECK(!left.is_there, node);
  if (std::exchange(left.workers, 0) != 0)
    choose_homes();
}

std::vector<shard_id> shard_map::lose(std::uint32_t node) {
  nodes_.at(node).is_there = false;
  std::vector<shard_id> homeless;
  for (std::uint32_t s = 0; s < places_.size(); ++s)
    if (places_[s] == shard_place{.where = shard_place::kind::node, .node = node}) {
      places_[s] = {};
      homeless.push_back({s});
    }
  return homeless;
}

/// By shards for each worker; the first of equals.
std::optional<std::uint32_t> shard_map::least_burdened() const {
  std::vector<std::int64_t> held(nodes_.size());
  for (const auto& place : places_)
    if (place.where == shard_place::kind::node)
      ++held[place.node];
  std::optional<std::uint32_t> best;
  for (std::uint32_t n = 0; n < nodes_.size(); ++n)
    if (nodes_[n].is_there && (!best || held[n] * nodes_[*best].workers < held[*best] * nodes_[n].workers))
      best = n;
  return best;
}

std::vector<shard_id> shard_map::place_homeless() {
  std::vector<shard_id> placed;
  for (std::uint32_t s = 0; s < places_.size(); ++s) {
    if (places_[s].where != shard_place::kind::nowhere)
      continue;
    if (nodes_[homes_[s]].is_there)
      places_[s] = {.where = shard_place::kind::node, .node = homes_[s]};
    else if (const auto node = least_burdened())
      places_[s] = {.where = shard_place::kind::node, .node = *node};
    else if (stays_here_)
      places_[s] = {.where = shard_place::kind::here};
    else
      continue;
    placed.push_back({s});
  }
  return placed;
}

bool shard_map::bring_home(shard_id shard) {
  const shard_place home{.where = shard_place::kind::node, .node = homes_.at(shard.value)};
  auto& place = places_.at(shard.value);
  if (place == home || !nodes_[home.node].is_there)
    return false;
  place = home;
  return true;
}

} // namespace mneme
