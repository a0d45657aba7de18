#include "runtime/base/assignment_table.hpp"
#include <catch2/catch_test_macros.hpp>
#include <map>
using namespace mneme;

TEST_CASE("an assignment table agrees with a std::map under random insertions and removals") {
  assignment_table<std::uint64_t> table;
  std::map<assignment_id, std::uint64_t> map;
  std::uint64_t next = 0, random = 1;
  for (int step = 0; step < 20'000; ++step) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const bool adds = map.empty() || (random >> 60U) < (map.size() < 300 ? 9U : 7U);
    if (adds) {
      next += 1 + (random >> 40U) % 3; // gaps, since drop-outs use ids, too
      CHECK(table.insert({next}, 10 * next) == 10 * next);
      map[{next}] = 10 * next;
    } else {
      auto gone = std::next(map.begin(), static_cast<std::ptrdiff_t>((random >> 32U) % map.size()));
      table.erase(gone->first);
      map.erase(gone);
    }
    REQUIRE(table.size() == map.size());
  }
  std::vector<assignment_id> ids;
  for (const auto& [id, value] : map) {
    ids.push_back(id);
    REQUIRE(table.find(id) != nullptr);
    CHECK(table.at(id) == value);
  }
  CHECK((table.ids() == ids));
  CHECK(table.find({next + 1}) == nullptr);
}

TEST_CASE("an entry that stays long does not make the table grow") {
  assignment_table<int> table;
  table.insert({0}, -1);
  for (std::uint64_t id = 1; id < 100'000; ++id) {
    table.insert({id}, static_cast<int>(id));
    if (id > 10)
      table.erase({id - 10});
  }
  CHECK(table.size() == 11);
  CHECK(table.at({0}) == -1);
  CHECK(table.slots() <= 32);
}

TEST_CASE("an empty table contains no entry") {
  assignment_table<int> table;
  CHECK(table.find({0}) == nullptr);
  CHECK(table.ids().empty());
  CHECK(table.slots() == 0);
}
