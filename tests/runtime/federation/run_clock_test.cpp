#include "runtime/base/tuning.hpp"
#include "runtime/federation/run_clock.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

using kind = federation_event::kind;

virtual_time at(virtual_duration span) { return virtual_time(span); }

federation_settings ten_clients() {
  scenario from;
  from.clients.count = 10;
  return {.clients = std::make_shared<const population>(from)};
}

assignment_in_flight numbered(std::uint64_t id) {
  assignment_in_flight owner;
  owner.id = {id};
  return owner;
}

} // namespace

TEST_CASE("events leave in time order, a deadline last at its time, and the clock stays at the last event") {
  const auto settings = ten_clients();
  run_clock clock(settings);
  auto first = numbered(1), second = numbered(2);
  clock.schedule_deadline({4}, at(3s));
  clock.expect(first, kind::stage_over, at(3s));
  clock.expect(second, kind::arrival, at(2s), party_id::proxy);
  CHECK_FALSE(first.is_uploading);
  CHECK(second.is_uploading);
  CHECK(first.event_sequence < second.event_sequence); // pushed earlier
  CHECK_FALSE(clock.has_begun());

  const auto arrival = clock.take_next();
  CHECK(arrival.assignment == assignment_id{2});
  CHECK(arrival.where == party_id::proxy);
  CHECK(clock.now() == at(2s));
  CHECK(clock.next().assignment == assignment_id{1});
  (void)clock.take_next();
  const auto deadline = clock.take_next();
  CHECK(deadline.event_kind == kind::deadline);
  CHECK(deadline.round == round_id{4});
  CHECK_FALSE(clock.has_events());
  CHECK(clock.has_begun());
}

TEST_CASE("the queue holds one event for the earliest change of a client") {
  const auto settings = ten_clients();
  run_clock clock(settings);
  clock.schedule_churn(std::nullopt);
  CHECK_FALSE(clock.has_events());
  clock.schedule_churn(at(5s));
  clock.schedule_churn(at(6s)); // scheduled again after the previous one
  clock.schedule_churn(at(5s));
  (void)clock.take_next();
  CHECK_FALSE(clock.has_events());
  clock.record_churn();
  clock.schedule_churn(at(6s));
  CHECK(clock.take_next().event_kind == kind::churn);
  CHECK(clock.now() == at(6s));
}

TEST_CASE("a run fails as stalled at the end of time or after many events without progress, and names the cause") {
  const auto settings = ten_clients();
  run_clock clock(settings);
  auto owner = numbered(1);
  clock.expect(owner, kind::arrival, end_of_runs, party_id::proxy);
  CHECK(clock.is_stalled());
  CHECK_THAT(clock.stall_reason({2}), ContainsSubstring("in round 3 because of devices.proxy_uplink_mbit"));

  run_clock busy(settings);
  const auto fruitless_max = tuning::stalled_events_max + 10 * tuning::stalled_events_per_client;
  for (std::int64_t event = 0; event <= fruitless_max; ++event)
    busy.expect(owner, kind::stage_over, at(1s));
  for (std::int64_t event = 0; event < fruitless_max; ++event) {
    REQUIRE_FALSE(busy.is_stalled());
    (void)busy.take_next();
  }
  CHECK(busy.is_stalled());
  CHECK_THAT(busy.stall_reason({0}),
             ContainsSubstring("no upload arrived in the last " + std::to_string(fruitless_max)));
  busy.record_progress();
  CHECK_FALSE(busy.is_stalled());
}

TEST_CASE("a clock that was saved and loaded continues with the same events in the same order") {
  const auto settings = ten_clients();
  run_clock clock(settings);
  auto first = numbered(1), second = numbered(2), third = numbered(3);
  clock.expect(first, kind::stage_over, at(1s));
  clock.expect(second, kind::arrival, at(4s));
  clock.schedule_churn(at(3s));
  (void)clock.take_next();
  archive saved;
  clock.persist(saved);
  run_clock again(settings);
  archive loaded(saved.contents(), 0, saved.size());
  again.persist(loaded);
  CHECK(again.is_valid());
  CHECK(again.now() == at(1s));
  again.schedule_churn(at(3s)); // there is already one
  CHECK(again.take_next().event_kind == kind::churn);
  CHECK(again.take_next().assignment == assignment_id{2});
  CHECK_FALSE(again.has_events());
  again.expect(third, kind::stage_over, at(5s));
  CHECK(third.event_sequence == 2);
}

TEST_CASE("a federation stops after the given number of events") {
  auto settings = ten_clients();
  settings.events_max = 1;
  run_clock clock(settings);
  auto owner = numbered(1);
  clock.expect(owner, kind::stage_over, at(1s));
  CHECK_FALSE(clock.is_at_last_event());
  (void)clock.take_next();
  CHECK(clock.is_at_last_event());
}
