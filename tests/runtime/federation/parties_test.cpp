#include "runtime/federation/activities.hpp"
#include "runtime/federation/federation_event.hpp"
#include "runtime/federation/parties.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>
#include <string>
using namespace mneme;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("each party has its own name, links and events, in id order") {
  CHECK(row_of(party_id::server).name == std::string("server"));
  CHECK(row_of(party_id::proxy).name == std::string("proxy"));
  std::set<std::string> names, leaves, arrives;
  for (const auto& party : parties) {
    names.insert(party.name);
    leaves.insert(party.leaves_event);
    arrives.insert(party.arrives_event);
  }
  CHECK(names.size() == parties.size());
  CHECK(leaves.size() == parties.size());
  CHECK(arrives.size() == parties.size());
}

TEST_CASE("each part of a client's result uses its party's link") {
  scenario from;
  from.clients.count = 2;
  from.devices.uplink_mbit = 0.000128; // 16 bytes per second
  from.devices.proxy_uplink_mbit = std::vector{0.000064, 0.0};
  from.devices.latency = 100ms;
  const population clients(from);
  const party_bytes bytes{32, 16};
  CHECK(upload_time(clients, party_id::server, {.client = {0}, .bytes = bytes[0]}) == 2100ms);
  CHECK(upload_time(clients, party_id::proxy, {.client = {0}, .bytes = bytes[1]}) == 2100ms);
  CHECK(upload_time(clients, party_id::proxy, {.client = {1}, .bytes = bytes[1]}) == 100ms);
  CHECK(sum_of(bytes) == 48);
}

TEST_CASE("an arrival that never happens names the keys of its link") {
  federation_event event{.event_kind = federation_event::kind::arrival};
  CHECK_THAT(event.related_keys(), ContainsSubstring("devices.uplink_mbit"));
  event.where = party_id::proxy;
  CHECK_THAT(event.related_keys(), ContainsSubstring("devices.proxy_uplink_mbit"));
}

TEST_CASE("a round ends with an upload, an observation ends without one, and costs follow the scenario") {
  const auto &round = row_of(activity_id::round), &look = row_of(activity_id::observe);
  CHECK(round.uploads());
  CHECK_FALSE(look.uploads());
  CHECK(look.observes);
  federation_settings settings;
  for (const bool costs : {true, false}) {
    settings.observers_cost_time = costs;
    CHECK_FALSE(round.is_free(settings));
    CHECK(look.is_free(settings) == !costs);
  }
}
