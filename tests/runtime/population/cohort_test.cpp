#include "runtime/population/cohort.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>
using namespace mneme;

namespace {

std::vector<client_id> draw(std::uint64_t round, std::int64_t clients, std::int64_t wanted,
                            const std::function<bool(client_id)>& available) {
  return draw_cohort(key_for({.seed = 7, .index = round}, purpose::cohort), clients, wanted, available);
}

bool everybody(client_id) { return true; }

} // namespace

TEST_CASE("a cohort has distinct available clients in ascending order") {
  for (const std::int64_t clients : {10, 5000, 100000}) { // below and above the limit for listing
    const auto odd = [](client_id client) { return client.value % 2 == 1; };
    const auto drawn = draw(1, clients, 3, odd);
    REQUIRE((drawn.size() == 3));
    CHECK(std::is_sorted(drawn.begin(), drawn.end()));
    CHECK((std::set<client_id>(drawn.begin(), drawn.end()).size() == 3));
    CHECK(std::all_of(drawn.begin(), drawn.end(), odd));
    CHECK((draw(1, clients, 3, odd) == drawn));
    CHECK((draw(2, clients, 3, odd) != drawn));
  }
}

TEST_CASE("if fewer clients are available than the cohort size, all are drawn") {
  const auto few = [](client_id client) { return client.value % 40000 == 3; };
  CHECK((draw(0, 100000, 50, few) == std::vector<client_id>{{3}, {40003}, {80003}}));
  CHECK(draw(0, 100000, 50, [](client_id) { return false; }).empty());
  CHECK((draw(0, 4, 50, everybody).size() == 4));
}

TEST_CASE("all clients are drawn equally often") {
  // 4,000 cohorts of 5 out of 20: each client 1,000 times, standard deviation sqrt(4000 * 0.25 * 0.75) = 27.4.
  std::vector<int> times(20);
  for (std::uint64_t round = 0; round < 4000; ++round)
    for (const auto client : draw(round, 20, 5, everybody))
      ++times[client.value];
  for (const auto count : times)
    CHECK(std::abs(count - 1000) < 110);
  // With rejection: 400 cohorts of 100 out of 8,000 draw each client 5 times on average; each half gets 20,000.
  int lower = 0;
  for (std::uint64_t round = 0; round < 400; ++round)
    for (const auto client : draw(round, 8000, 100, everybody))
      lower += client.value < 4000;
  CHECK(std::abs(lower - 20000) < 400); // standard deviation 99
}
