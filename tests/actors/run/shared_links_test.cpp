// The server's shared link, worked out by hand. The clients are those of tests/support/traces.hpp: messages of 128
// bits, uplinks of 128, unlimited and 64 bit/s, downlinks of 256 bit/s.
#include "tests/support/interrupted_runs.hpp"
#include "tests/support/traces.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

TEST_CASE("uploads share the server's link") {
  const auto run = run_toml(
      three_clients, {.over = {{"rounds.per_task", "1"}, {"devices.server_uplink_mbit", "0.000064"}}, .trace = true});
  // Client 0 has sent 64 bits when client 1 begins. With half the link each, client 0 ends at 4.6 s, when client 1 has
  // 64 bits left. Client 2 also has 64 bits left when client 1 ends.
  CHECK(events_of(run.events) == "0.0 scheduler task\n"
                                 "0.0 scheduler open_round\n"
                                 "0.0 scheduler dispatch 0\n"
                                 "0.0 scheduler dispatch 1\n"
                                 "0.0 scheduler dispatch 2\n"
                                 "0.6 client start 0\n"
                                 "0.6 client start 1\n"
                                 "0.6 client start 2\n"
                                 "1.6 client upload 0\n"
                                 "2.6 client upload 1\n"
                                 "4.6 client upload 2\n"
                                 "4.7 server deliver 0\n"
                                 "6.7 server deliver 1\n"
                                 "7.7 server deliver 2\n"
                                 "7.7 scheduler close_round\n"
                                 "7.7 server evaluate\n"
                                 "7.7 scheduler end\n");
}

TEST_CASE("downloads share the server's link, and computing begins when they end") {
  const auto run = run_toml(
      three_clients, {.over = {{"rounds.per_task", "1"}, {"devices.server_downlink_mbit", "0.000128"}}, .trace = true});
  // 384 bits at 128 bit/s: 3 s.
  CHECK(events_of(run.events).substr(events_of(run.events).find("3.1")) == "3.1 client start 0\n"
                                                                           "3.1 client start 1\n"
                                                                           "3.1 client start 2\n"
                                                                           "4.1 client upload 0\n"
                                                                           "5.1 client upload 1\n"
                                                                           "5.2 server deliver 0\n"
                                                                           "5.2 server deliver 1\n"
                                                                           "7.1 client upload 2\n"
                                                                           "9.2 server deliver 2\n"
                                                                           "9.2 scheduler close_round\n"
                                                                           "9.2 server evaluate\n"
                                                                           "9.2 scheduler end\n");
}

TEST_CASE("a late client releases its share of the link") {
  const auto run = run_toml(
      three_clients, {.over = {{"rounds.deadline", "5 s"}, {"devices.server_uplink_mbit", "0.000064"}}, .trace = true});
  CHECK(run.summary.late_uploads == 4); // clients 1 and 2, in both rounds
  CHECK(run.summary.virtual_seconds == 10.0);
}

TEST_CASE("a server link wider than all client links only delays instantaneous uploads") {
  // Client 1's own uplink is instantaneous. The shared link takes 1 ns for its 128 bits, and a nanosecond changes the
  // run digest.
  const overrides limited{{"devices.uplink_mbit", "[0.000128, 128000.0, 0.000064]"}};
  const overrides wide{{"devices.uplink_mbit", "[0.000128, 128000.0, 0.000064]"},
                       {"devices.server_uplink_mbit", "1e6"},
                       {"devices.server_downlink_mbit", "1e6"}};
  const auto alone = run_toml(three_clients, {.over = limited, .trace = true});
  const auto shared = run_toml(three_clients, {.over = wide, .trace = true});
  CHECK(shared.events == alone.events);
  CHECK(shared.summary.run_digest == alone.summary.run_digest);
  CHECK(shared.summary.virtual_seconds == alone.summary.virtual_seconds);
}

TEST_CASE("a client whose download ends late uploads as late as with a link of its own") {
  // The first finished download starts the computing of all clients, so stages of the others are computed before
  // theirs.
  const overrides own{{"rounds.per_task", "1"},
                      {"devices.downlink_mbit", "[0.000256, 0.000064, 0.000034]"},
                      {"devices.uplink_mbit", "[0.000128, 128000.0, 0.000064]"}};
  auto shared = own;
  shared.emplace_back("devices.server_downlink_mbit", "1e6");
  const auto alone = run_toml(three_clients, {.over = own, .trace = true});
  const auto together = run_toml(three_clients, {.over = shared, .trace = true});
  CHECK(together.events == alone.events);
  CHECK(together.summary.run_digest == alone.summary.run_digest);
}

TEST_CASE("a run with shared links resumes from any event with an equal digest") {
  const overrides shared{{"devices.server_uplink_mbit", "0.000096"},
                         {"devices.server_downlink_mbit", "0.000300"},
                         {"rounds.per_task", "6"}};
  const workshop shop(three_clients);
  REQUIRE(shop.run("whole", {.trace = true}, shared).status == "done");
  CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 7}, workers::others, shared) > 5);
  check_equal_files(shop.path("whole"), shop.path("pieces"), workers::others);
  overrides restless = shared;
  restless.insert(restless.end(), {{"rounds.mode", "async"}, {"rounds.buffer", "2"}, {"rounds.concurrency", "3"}});
  REQUIRE(shop.run("async", {.trace = true}, restless).status == "done");
  CHECK(run_in_pieces(shop, "async pieces", {.trace = true, .events_max = 9}, workers::alike, restless) > 3);
  check_equal_files(shop.path("async"), shop.path("async pieces"));
}
