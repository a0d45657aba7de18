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

/// Results of ten bytes that arrive in the order of `arrivals`; the assignment id is the index.
struct waiting_results {
  in_flight_table table{};
  evicted_results results;
  waiting_results(std::int64_t bytes_max, const std::vector<int>& arrivals, bool repeatable = true)
      : results(bytes_max, repeatable) {
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      assignment_in_flight added;
      added.id = {i};
      added.client = {static_cast<std::uint32_t>(i)};
      added.phase = assignment_phase::finished;
      added.horizon = virtual_time{std::chrono::seconds(arrivals[i])};
      added.upload_bytes() = 10;
      results.added(table.add(std::move(added)));
    }
  }
  std::vector<std::uint64_t> in_phase(assignment_phase phase) {
    std::vector<std::uint64_t> found;
    for (const auto id : table.ids())
      if (table.at(id).phase == phase)
        found.push_back(id.value);
    return found;
  }
};

using ids = std::vector<std::uint64_t>;

} // namespace

TEST_CASE("the results that arrive last are evicted if the memory is too small for all") {
  const auto clients = instant_clients();
  waiting_results waiting(25, {4, 1, 3, 2});
  waiting.table.hold(waiting.table.at({0}), 100);
  CHECK(waiting.results.evict(waiting.table, clients));
  CHECK((waiting.in_phase(assignment_phase::finished) == ids{1, 3}));
  CHECK((waiting.in_phase(assignment_phase::evicted) == ids{0, 2}));
  CHECK((waiting.table.at({0}).held_bytes == 0)); // its results are no longer in memory
  CHECK_FALSE(waiting.results.evict(waiting.table, clients));
}

TEST_CASE("an upload delivered during a wave counts as if it had waited for the end of the wave") {
  const auto clients = instant_clients();
  waiting_results waiting(25, {4, 3});
  // Parts sent to the proxy were also held.
  const auto upload_of = [](std::int64_t bytes, std::int64_t proxy_bytes) {
    assignment_in_flight owner;
    owner.sends = {bytes, proxy_bytes};
    return owner;
  };
  CHECK(waiting.results.has_room_during_wave(upload_of(10, 15)));
  CHECK_FALSE(waiting.results.has_room_during_wave(upload_of(10, 16)));
  waiting.results.delivered_during_wave(upload_of(6, 4));
  CHECK(waiting.results.has_room_during_wave(upload_of(15, 0)));
  CHECK_FALSE(waiting.results.has_room_during_wave(upload_of(16, 0)));
  CHECK(waiting.results.evict(waiting.table, clients));
  CHECK((waiting.in_phase(assignment_phase::finished) == ids{1}));
  CHECK_FALSE(waiting.results.evict(waiting.table, clients)); // no upload was delivered since the last wave
}

TEST_CASE("no result is evicted if recomputing it could change it") {
  waiting_results waiting(1, {1, 2}, false);
  CHECK_FALSE(waiting.results.evict(waiting.table, instant_clients()));
  CHECK((waiting.in_phase(assignment_phase::finished) == ids{0, 1}));
}

TEST_CASE("an evicted result is recomputed together with the next ones that fit") {
  const auto clients = instant_clients();
  waiting_results waiting(35, {5, 4, 3, 2, 1});
  CHECK(waiting.results.evict(waiting.table, clients));
  REQUIRE((waiting.in_phase(assignment_phase::evicted) == ids{0, 1}));
  for (const std::uint64_t id : {4, 3}) { // they are delivered
    waiting.results.removed(waiting.table.at({id}));
    waiting.table.erase({id});
  }
  const auto chosen = waiting.results.to_recompute({1}, waiting.table, clients);
  CHECK((chosen == std::vector<assignment_id>{{1}, {0}}));
  waiting_results small(10, {2, 1});
  CHECK(small.results.evict(small.table, clients));
  // An evicted result that is needed is recomputed even if it exceeds the memory.
  CHECK((small.results.to_recompute({0}, small.table, clients) == std::vector<assignment_id>{{0}}));
}

TEST_CASE("results that arrive at the same time are kept in delivery order") {
  const auto clients = instant_clients();
  const auto kept = [&](const auto& change) {
    waiting_results waiting(10, {5, 5});
    change(waiting.table.at({0}), waiting.table.at({1}));
    CHECK(waiting.results.evict(waiting.table, clients));
    return waiting.in_phase(assignment_phase::finished);
  };
  // Both are in the queue: the one that was pushed first is delivered first.
  CHECK(kept([](auto& a, auto& b) { a.event_sequence = 1, b.event_sequence = 2; }) == ids{0});
  CHECK(kept([](auto& a, auto& b) { a.event_sequence = 2, b.event_sequence = 1; }) == ids{1});
  // An upload in progress is delivered before one that has not started.
  CHECK(kept([](auto& a, auto& b) { a.event_sequence = 1, b.event_sequence = 2, b.is_uploading = true; }) == ids{1});
  // Their last stages end at the same time: the one whose last stage started first is sent first.
  CHECK(kept([](auto& a, auto& b) {
          a.stages.assign(1, std::chrono::seconds(1));
          b.stages.assign(1, std::chrono::seconds(2));
        }) == ids{1});
}
