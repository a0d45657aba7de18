#include "runtime/federation/evicted_results.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

population instant_clients() {
  scenario from;
  from.clients.count = 10;
  from.devices.uplink_mbit = 0.0;
  from.devices.latency = virtual_duration{0};
  return population(from);
}

/// Results of ten bytes that arrive in the order of `arrivals`; the assignment's id is the place in it.
struct waiting_results {
  in_flight_table table{};
  evicted_results results;
  waiting_results(std::int64_t bytes_max, const std::vector<int>& arrivals, bool repeatable = true)
      : results(bytes_max, repeatable) {
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      assignment_in_flight added;
      added.id = {i};
      added.client = {static_cast<std::uint32_t>(i)};
      added.phase = flight_phase::finished;
      added.horizon = virtual_time{std::chrono::seconds(arrivals[i])};
      added.upload_bytes = 10;
      results.added(table.add(std::move(added)));
    }
  }
  std::vector<std::uint64_t> in_phase(flight_phase phase) {
    std::vector<std::uint64_t> found;
    for (const auto id : table.ids())
      if (table.at(id).phase == phase)
        found.push_back(id.value);
    return found;
  }
};

using ids = std::vector<std::uint64_t>;

} // namespace

TEST_CASE("results that arrive last are evicted where memory has no room for all") {
  const auto clients = instant_clients();
  waiting_results waiting(25, {4, 1, 3, 2});
  waiting.table.hold(waiting.table.at({0}), 100);
  CHECK(waiting.results.evict(waiting.table, clients));
  CHECK((waiting.in_phase(flight_phase::finished) == ids{1, 3}));
  CHECK((waiting.in_phase(flight_phase::evicted) == ids{0, 2}));
  CHECK((waiting.table.at({0}).held_bytes == 0)); // its outcomes are in memory no more
  CHECK_FALSE(waiting.results.evict(waiting.table, clients));
}

TEST_CASE("an upload delivered while a wave was out counts as if it had waited for the wave's end") {
  const auto clients = instant_clients();
  waiting_results waiting(25, {4, 3});
  CHECK(waiting.results.has_room_during_wave(25));
  waiting.results.delivered_during_wave(10);
  CHECK_FALSE(waiting.results.has_room_during_wave(16));
  CHECK(waiting.results.evict(waiting.table, clients));
  CHECK((waiting.in_phase(flight_phase::finished) == ids{1}));
  CHECK_FALSE(waiting.results.evict(waiting.table, clients)); // the next wave begins with nothing delivered
}

TEST_CASE("nothing is evicted where a second result might be another") {
  waiting_results waiting(1, {1, 2}, false);
  CHECK_FALSE(waiting.results.evict(waiting.table, instant_clients()));
  CHECK((waiting.in_phase(flight_phase::finished) == ids{0, 1}));
}

TEST_CASE("what is needed is computed again, with what arrives next as far as there is room") {
  const auto clients = instant_clients();
  waiting_results waiting(35, {5, 4, 3, 2, 1});
  CHECK(waiting.results.evict(waiting.table, clients));
  REQUIRE((waiting.in_phase(flight_phase::evicted) == ids{0, 1}));
  for (const std::uint64_t id : {4, 3}) { // are delivered
    waiting.results.removed(waiting.table.at({id}));
    waiting.table.erase({id});
  }
  const auto chosen = waiting.results.to_recompute({1}, waiting.table, clients);
  CHECK((chosen == std::vector<assignment_id>{{1}, {0}}));
  waiting_results small(10, {2, 1});
  CHECK(small.results.evict(small.table, clients));
  CHECK((small.results.to_recompute({0}, small.table, clients) ==
         std::vector<assignment_id>{{0}})); // needed: no question
}
