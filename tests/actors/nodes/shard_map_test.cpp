#include "actors/nodes/shard_map.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

constexpr shard_place here{.where = shard_place::kind::here};
constexpr shard_place nowhere{};
constexpr shard_place node(std::uint32_t number) { return {.where = shard_place::kind::node, .node = number}; }

std::vector<shard_place> places(const shard_map& map, std::uint32_t shards) {
  std::vector<shard_place> found;
  for (std::uint32_t s = 0; s < shards; ++s)
    found.push_back(map.place_of({s}));
  return found;
}

} // namespace

TEST_CASE("shards are spread over nodes by their workers, neighbours together") {
  CHECK((places(shard_map(4, {1, 3}, true), 4) == std::vector{node(0), node(1), node(1), node(1)}));
  CHECK((places(shard_map(2, {2, 2}, true), 2) == std::vector{node(0), node(1)}));
}

TEST_CASE("shards of a lost node go to the least burdened one, and home when it is back and they are idle") {
  shard_map map(4, {2, 1, 1}, true);
  CHECK((map.lose(0) == std::vector<shard_id>{{0}, {1}}));
  CHECK((map.place_of({0}) == nowhere));
  CHECK(map.place_homeless().size() == 2);
  CHECK((places(map, 4) == std::vector{node(1), node(2), node(1), node(2)}));
  CHECK_FALSE(map.bring_home({0})); // its node is away
  map.find(0, 2);
  CHECK(map.place_homeless().empty());
  CHECK(map.bring_home({0}));
  CHECK_FALSE(map.bring_home({0}));
  CHECK((map.place_of({0}) == node(0)));
}

TEST_CASE("without any node shards stay in the run's process, or wait") {
  for (const bool stays_here : {true, false}) {
    shard_map map(2, {1, 1}, stays_here);
    CHECK(map.lose(0).size() == 1);
    CHECK(map.place_homeless().size() == 1);
    CHECK(map.lose(1).size() == 2);
    CHECK(map.place_homeless().size() == (stays_here ? 2 : 0));
    CHECK((map.place_of({0}) == (stays_here ? here : nowhere)));
    map.find(1, 1);
    CHECK(map.place_homeless().size() == (stays_here ? 0 : 2));
    CHECK(map.bring_home({1}) == stays_here);
    CHECK((map.place_of({1}) == node(1)));
  }
}

TEST_CASE("idle shards come to nodes that are named later, and leave those that are not named any more") {
  shard_map map(4, {1, 1}, true);
  CHECK((places(map, 4) == std::vector{node(0), node(0), node(1), node(1)}));
  map.add();
  CHECK_FALSE(map.is_there(2));
  CHECK_FALSE(map.bring_home({3})); // it has no worker yet
  map.find(2, 2);
  const std::vector homes{node(0), node(1), node(2), node(2)};
  for (std::uint32_t s = 0; s < 4; ++s)
    CHECK(map.bring_home({s}) == (s > 0));
  CHECK((places(map, 4) == homes));
  CHECK(map.lose(0).size() == 1);
  map.dismiss(0);
  CHECK(map.place_homeless().size() == 1);
  CHECK((map.place_of({0}) == node(1))); // its home now
  CHECK_FALSE(map.bring_home({1}));
  map.find(0, 1);
  CHECK(map.bring_home({0}));
}
