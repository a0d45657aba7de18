#include "runtime/base/rng.hpp"
#include "runtime/population/client_set.hpp"
#include <catch2/catch_test_macros.hpp>
#include <set>
using namespace mneme;

TEST_CASE("nth() returns the n-th id in order after any insertions and removals") {
  for (const std::int64_t clients : {1, 63, 64, 2048, 2049, 300'000}) {
    client_set set(clients);
    std::set<std::uint32_t> expected;
    rng_stream draw({.seed = 5, .purpose = first_method_purpose});
    for (int i = 0; i < 4000; ++i) {
      const auto who = static_cast<std::uint32_t>(draw.below(static_cast<std::uint64_t>(clients)));
      const bool in = draw.below(3) > 0;
      set.put({who}, in);
      in ? (void)expected.insert(who) : (void)expected.erase(who);
    }
    REQUIRE(set.size() == std::ssize(expected));
    std::int64_t n = 0;
    for (const auto who : expected) {
      CHECK(set.contains({who}));
      REQUIRE(set.nth(n++) == client_id{who});
    }
  }
}

TEST_CASE("inserting or removing a client twice has no effect") {
  client_set set(100);
  set.put({70}, true);
  set.put({70}, true);
  CHECK(set.size() == 1);
  set.put({70}, false);
  set.put({70}, false);
  CHECK(set.size() == 0);
  CHECK_FALSE(set.contains({70}));
}
