// Clients and links are those of the table in federation_test.cpp.
#include "runtime/federation/dispatcher.hpp"
#include "tests/runtime/federation/three_clients.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;
using namespace std::chrono_literals;

namespace {

std::vector<std::uint32_t> clients_at_work(federation_parts& parts) {
  std::vector<std::uint32_t> clients;
  for (const auto id : parts.in_flight.ids())
    clients.push_back(parts.in_flight.at(id).client.value);
  return clients;
}

using numbers = std::vector<std::uint32_t>;

} // namespace

TEST_CASE("a dispatched cohort begins work after its downloads and is busy until the work ends") {
  federation_parts parts(toy_of(three_clients()).settings);
  CHECK(parts.dispatch.dispatch_cohort());
  CHECK(clients_at_work(parts) == numbers{0, 1, 2});
  CHECK(parts.round.missing == 3);
  const auto& first = parts.in_flight.at({0});
  CHECK(first.horizon == virtual_time(600ms)); // 0.1 s and 16 bytes at 32 bytes per second
  CHECK(first.activity_kind == activity_id::round);
  CHECK(first.upload_bytes() == 16); // size of the weights
  CHECK(parts.out.report().download_bytes == 48);
  CHECK(parts.dispatch.next_assignment() == assignment_id{3});
  CHECK_FALSE(parts.dispatch.pool().is_available({1}));
  parts.dispatch.end(parts.in_flight.at({1}));
  CHECK(parts.dispatch.pool().is_available({1}));
  CHECK(clients_at_work(parts) == numbers{0, 2});
}

TEST_CASE("observing clients outside the cohort pay for their download, or nothing if observing is free") {
  for (const bool costs : {true, false}) {
    auto from = three_clients();
    from.rounds.cohort = 1;
    auto toy = toy_of(from);
    toy.settings.observers_cost_time = costs;
    federation_parts parts(toy.settings);
    parts.dispatch.plan_task({.observers = 1});
    CHECK(parts.dispatch.dispatch_cohort());
    REQUIRE(parts.in_flight.size() == 2);
    const auto& looking = parts.in_flight.at({1});
    CHECK(looking.activity_kind == activity_id::observe);
    CHECK(looking.upload_bytes() == 0);
    CHECK(looking.horizon == (costs ? virtual_time(600ms) : virtual_time{}));
    CHECK(parts.out.report().download_bytes == (costs ? 32 : 16));
  }
}

TEST_CASE("advice uses its party's link, and work starts at the later of both arrivals") {
  auto from = three_clients();
  from.devices.proxy_downlink_mbit = std::vector{0.000064, 0.0, 0.0}; // 24 bytes take 3 s
  auto toy = toy_of(from);
  toy.settings.other_parties = {party_id::proxy};
  federation_parts parts(toy.settings);
  parts.round.last_advice[index_of(party_id::proxy)] = {.advice = as_tensors(3), .bytes = 24};
  CHECK(parts.dispatch.dispatch_cohort());
  CHECK(parts.in_flight.at({0}).horizon == virtual_time(3100ms));
  CHECK(parts.in_flight.at({1}).horizon == virtual_time(600ms));
  CHECK(parts.out.report().proxy_bytes == 3 * 24);
}

TEST_CASE("late work is dropped or kept, as rounds.late selects, and counted once") {
  for (const auto policy : {late_policy::drop, late_policy::keep}) {
    auto from = three_clients();
    from.rounds.late = policy;
    federation_parts parts(toy_of(from).settings);
    CHECK(parts.dispatch.dispatch_cohort());
    parts.in_flight.at({1}).round = {7}; // late, kept from another round
    parts.dispatch.deadline_passed();
    CHECK(parts.out.report().late_uploads == 2);
    CHECK(clients_at_work(parts) == (policy == late_policy::drop ? numbers{1} : numbers{0, 1, 2}));
    CHECK(parts.dispatch.pool().is_available({0}) == (policy == late_policy::drop));
  }
}

TEST_CASE("a client's memory is passed to its next round only after its work has ended") {
  federation_parts parts(toy_of(three_clients()).settings);
  CHECK(parts.dispatch.dispatch_cohort());
  parts.ahead.start_queued();
  auto& owner = parts.in_flight.at({0});
  owner.result.memory = as_tensors(9);
  owner.result.counts = {{"seen", 2.0}};
  parts.dispatch.end(owner);
  CHECK(parts.out.report().counts.at("seen") == 2.0);
  CHECK(parts.dispatch.dispatch_cohort()); // only client 0 is idle
  parts.ahead.start_queued();
  const auto commands = parts.commands();
  const auto* const wave = std::get_if<start_rounds>(&commands.back());
  REQUIRE(wave);
  const auto& again = wave->assignments.back();
  CHECK(again.client == client_id{0});
  CHECK(again.visit == 1);
  CHECK(as_number(again.memory) == 9);
}

TEST_CASE("abandoned work that was not started is dropped, and started work is recalled from its shard") {
  federation_parts parts(toy_of(three_clients()).settings);
  CHECK(parts.dispatch.dispatch_cohort());
  parts.dispatch.abandon({{2}}, "left");
  CHECK(parts.commands().empty());
  parts.ahead.start_queued();
  auto commands = parts.commands();
  CHECK(std::get<start_rounds>(commands.back()).assignments.size() == 2);
  parts.dispatch.abandon({{0}, {1}}, "left");
  commands = parts.commands();
  REQUIRE(commands.size() == 1);
  CHECK((std::get<abandon>(commands.back()).assignments == std::vector<assignment_id>{{0}, {1}}));
  CHECK(parts.in_flight.size() == 0);
}
