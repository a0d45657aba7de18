#include "actors/nodes/shard_map.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

constexpr shard_location local{.where = shard_location::kind::local};
constexpr shard_location unassigned{};
constexpr shard_location node(std::uint32_t number) { return {.where = shard_location::kind::node, .node = number}; }

std::vector<shard_location> places(const shard_map& map, std::uint32_t shards) {
  std::vector<shard_location> found;
  for (std::uint32_t s = 0; s < shards; ++s)
    found.push_back(map.location_of({s}));
  return found;
}

/// Map whose shards are assigned to nodes with these numbers of workers.
shard_map placed(std::size_t shards, const std::vector<std::int64_t>& workers, bool is_local_fallback = true,
                 std::int64_t local_workers = 0) {
  shard_map map(shards, local_workers, is_local_fallback);
  for (std::uint32_t n = 0; n < workers.size(); ++n) {
    map.add();
    map.join(n, workers[n]);
  }
  CHECK(map.assign_orphaned_shards().size() == shards);
  return map;
}

} // namespace

TEST_CASE("shard_map gives hosts contiguous ranges of shards in proportion to their workers") {
  CHECK((places(placed(4, {1, 3}), 4) == std::vector{node(0), node(1), node(1), node(1)}));
  CHECK((places(placed(2, {2, 2}), 2) == std::vector{node(0), node(1)}));
  CHECK((places(placed(4, {1, 1}, true, 2), 4) == std::vector{local, local, node(0), node(1)}));
}

TEST_CASE("shards of a lost node move to the least loaded host and return when idle") {
  auto map = placed(4, {2, 1, 1});
  CHECK((map.on_node_lost(0) == std::vector<shard_id>{{0}, {1}}));
  CHECK((map.location_of({0}) == unassigned));
  CHECK(map.assign_orphaned_shards().size() == 2);
  CHECK((places(map, 4) == std::vector{node(1), node(2), node(1), node(2)}));
  CHECK_FALSE(map.return_to_preferred({0})); // its node is lost
  map.join(0, 2);
  CHECK(map.assign_orphaned_shards().empty());
  CHECK(map.return_to_preferred({0}));
  CHECK_FALSE(map.return_to_preferred({0}));
  CHECK((map.location_of({0}) == node(0)));
}

TEST_CASE("shards stay local or unassigned while there is no node") {
  for (const bool is_local_fallback : {true, false}) {
    auto map = placed(2, {1, 1}, is_local_fallback);
    CHECK(map.on_node_lost(0).size() == 1);
    CHECK(map.assign_orphaned_shards().size() == 1);
    CHECK(map.on_node_lost(1).size() == 2);
    CHECK(map.assign_orphaned_shards().size() == (is_local_fallback ? 2 : 0));
    CHECK((map.location_of({0}) == (is_local_fallback ? local : unassigned)));
    map.join(1, 1);
    CHECK(map.assign_orphaned_shards().size() == (is_local_fallback ? 0 : 2));
    CHECK(map.return_to_preferred({1}) == is_local_fallback);
    CHECK((map.location_of({1}) == node(1)));
  }
}

TEST_CASE("idle shards move to a node that joins later") {
  auto map = placed(4, {1, 1});
  CHECK((places(map, 4) == std::vector{node(0), node(0), node(1), node(1)}));
  map.add();
  CHECK_FALSE(map.is_connected(2));
  CHECK_FALSE(map.return_to_preferred({3})); // the new node is not ready yet
  map.join(2, 2);
  for (std::uint32_t s = 0; s < 4; ++s)
    CHECK(map.return_to_preferred({s}) == (s > 0));
  CHECK((places(map, 4) == std::vector{node(0), node(1), node(2), node(2)}));
}

TEST_CASE("shards of other nodes keep their hosts while a node leaves") {
  auto map = placed(4, {1, 1, 2});
  CHECK((places(map, 4) == std::vector{node(0), node(1), node(2), node(2)}));
  map.leave(0);
  for (std::uint32_t s = 1; s < 4; ++s)
    CHECK_FALSE(map.return_to_preferred({s}));
  CHECK(map.return_to_preferred({0}));
  CHECK((places(map, 4) == std::vector{node(1), node(1), node(2), node(2)}));
  CHECK_FALSE(map.return_to_preferred({0}));
}

TEST_CASE("a leaving node gets no shards and gives up each one when it is idle") {
  auto map = placed(4, {1, 1});
  map.leave(0);
  CHECK(map.hosts_shards(0));
  CHECK(map.return_to_preferred({0}));
  CHECK(map.return_to_preferred({1}));
  CHECK_FALSE(map.hosts_shards(0));
  CHECK((places(map, 4) == std::vector{node(1), node(1), node(1), node(1)}));
  map.leave(1); // the last node
  CHECK(map.return_to_preferred({0}));
  CHECK((map.location_of({0}) == local));
  auto waiting = placed(1, {1}, false);
  waiting.leave(0);
  CHECK(waiting.return_to_preferred({0}));
  CHECK((waiting.location_of({0}) == unassigned));
}
