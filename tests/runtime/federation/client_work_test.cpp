// Clients and links are those of the table in federation_test.cpp.
#include "runtime/federation/client_work.hpp"
#include "tests/runtime/federation/three_clients.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;
using namespace std::chrono_literals;

namespace {

using kind = federation_event::kind;

/// Client 0 after its download, in one stage of one second with a known result.
assignment_in_flight& working(federation_parts& parts, party_bytes sends) {
  CHECK(parts.dispatch.dispatch_cohort());
  auto& owner = parts.in_flight.at({0});
  owner.stages.assign(1, 1s);
  owner.horizon = virtual_time(1600ms);
  owner.phase = assignment_phase::finished;
  owner.sends = sends;
  owner.result = {.upload = as_tensors(5), .rows = 4, .to_proxy = sends[1] > 0 ? as_tensors(6) : nullptr};
  parts.ahead.has_result(owner);
  return owner;
}

/// Takes the next event, which must have the kind `expected`.
federation_event next_of(federation_parts& parts, kind expected, virtual_time at) {
  while (parts.clock.next().assignment != assignment_id{0})
    (void)parts.clock.take_next(); // of other clients
  const auto event = parts.clock.take_next();
  CHECK(event.event_kind == expected);
  CHECK(parts.clock.now() == at);
  return event;
}

} // namespace

TEST_CASE("a client works stage by stage, and its upload is delivered after the transfer") {
  auto from = three_clients();
  from.devices.latency = 100ms;
  federation_parts parts(toy_of(from).settings);
  auto& owner = working(parts, {16, 0});
  next_of(parts, kind::stage_over, virtual_time(600ms));
  CHECK_FALSE(parts.work.stage_over(owner));
  next_of(parts, kind::stage_over, virtual_time(1600ms));
  CHECK_FALSE(parts.work.stage_over(owner));
  const auto arrival = next_of(parts, kind::arrival, virtual_time(2700ms));
  CHECK(arrival.where == party_id::server);
  CHECK(parts.work.arrive(owner, arrival.where));
  CHECK(parts.in_flight.find({0}) == nullptr);
  CHECK(parts.round.folded == 1);
  CHECK(parts.out.report().upload_bytes == 16);
  CHECK(parts.commands().empty()); // waits for other clients
  parts.work.flush_deliveries();
  const auto commands = parts.commands();
  const auto& bundle = std::get<deliveries>(commands.back());
  CHECK(bundle.to == party_id::server);
  CHECK(as_number(bundle.uploads.at(0).upload) == 5);
  CHECK(bundle.uploads.at(0).rows == 4);
}

TEST_CASE("an upload is delivered once the other parties have received their parts, in any order") {
  for (const double proxy_mbit : {0.0, 0.000032}) { // 8 bytes take no time, or 2 s
    auto from = three_clients();
    from.devices.proxy_uplink_mbit = proxy_mbit;
    auto toy = toy_of(from);
    toy.settings.upload_size_known = false;
    toy.settings.other_parties = {party_id::proxy};
    federation_parts parts(toy.settings);
    auto& owner = working(parts, {16, 8});
    next_of(parts, kind::stage_over, virtual_time(600ms));
    CHECK_FALSE(parts.work.stage_over(owner));
    next_of(parts, kind::stage_over, virtual_time(1600ms));
    CHECK_FALSE(parts.work.stage_over(owner));
    const auto at_proxy = virtual_time(proxy_mbit == 0.0 ? 1700ms : 3700ms);
    const auto first = next_of(parts, kind::arrival, at_proxy);
    CHECK(first.where == party_id::proxy);
    CHECK_FALSE(parts.work.arrive(owner, first.where));
    const auto commands = parts.commands();
    const auto& bundle = std::get<deliveries>(commands.back());
    CHECK(bundle.to == party_id::proxy);
    CHECK(as_number(bundle.uploads.at(0).upload) == 6);
    CHECK(parts.out.report().proxy_bytes == 8);
    const auto second = next_of(parts, kind::arrival, std::max(at_proxy, virtual_time(2700ms)));
    CHECK(second.where == party_id::server);
    CHECK(parts.work.arrive(owner, second.where));
  }
}

TEST_CASE("an observing client sends no upload and ends with its last stage") {
  auto from = three_clients();
  from.rounds.cohort = 1;
  federation_parts parts(toy_of(from).settings);
  parts.dispatch.plan_task({.observers = 2});
  CHECK(parts.dispatch.dispatch_cohort());
  auto& owner = parts.in_flight.at({1});
  owner.phase = assignment_phase::finished;
  parts.ahead.has_result(owner);
  CHECK(parts.work.stage_over(owner));
  CHECK(parts.in_flight.find({1}) == nullptr);
  CHECK(parts.out.report().observations == 1);
  CHECK(parts.round.folded == 0);
}
