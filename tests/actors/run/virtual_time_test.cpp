// Virtual time of synchronous rounds, worked out by hand. The clients are those of tests/support/traces.hpp. Client 1's
// upload arrives after client 0's, because it is sent later.
#include "tests/support/traces.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

TEST_CASE("events of synchronous rounds have the virtual times worked out by hand") {
  const auto run = run_toml(three_clients, {.over = {{"rounds.per_task", "1"}}, .trace = true});
  CHECK(run.summary.status == "done");
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
                                 "2.7 server deliver 0\n"
                                 "2.7 server deliver 1\n"
                                 "4.6 client upload 2\n"
                                 "6.7 server deliver 2\n"
                                 "6.7 scheduler close_round\n"
                                 "6.7 server evaluate\n"
                                 "6.7 scheduler end\n");
  CHECK(run.summary.virtual_seconds == 6.7);
  CHECK(run.summary.upload_bytes == 48);
  CHECK(run.summary.download_bytes == 48);
  CHECK(run.summary.client_rounds == 3);
}

TEST_CASE("a deadline drops late uploads, and late clients take part in the next round") {
  const auto run = run_toml(three_clients, {.over = {{"rounds.deadline", "5 s"}}, .trace = true});
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
                                 "2.7 server deliver 0\n"
                                 "2.7 server deliver 1\n"
                                 "4.6 client upload 2\n"
                                 "5.0 scheduler deadline\n"
                                 "5.0 client late 2\n"
                                 "5.0 scheduler close_round\n"
                                 "5.0 scheduler open_round\n"
                                 "5.0 scheduler dispatch 0\n"
                                 "5.0 scheduler dispatch 1\n"
                                 "5.0 scheduler dispatch 2\n"
                                 "5.6 client start 0\n"
                                 "5.6 client start 1\n"
                                 "5.6 client start 2\n"
                                 "6.6 client upload 0\n"
                                 "7.6 client upload 1\n"
                                 "7.7 server deliver 0\n"
                                 "7.7 server deliver 1\n"
                                 "9.6 client upload 2\n"
                                 "10.0 scheduler deadline\n"
                                 "10.0 client late 2\n"
                                 "10.0 scheduler close_round\n"
                                 "10.0 server evaluate\n"
                                 "10.0 scheduler end\n");
  CHECK(run.summary.late_uploads == 2);
  CHECK(run.summary.upload_bytes == 4 * 16);
  CHECK(run.summary.download_bytes == 6 * 16);
}

TEST_CASE("a late upload that is kept is folded into the round that is open when it arrives") {
  const auto run =
      run_toml(three_clients, {.over = {{"rounds.deadline", "5 s"}, {"rounds.late", "keep"}}, .trace = true});
  const auto second_round = events_of(run.events).substr(events_of(run.events).find("5.0 scheduler close_round"));
  CHECK(second_round == "5.0 scheduler close_round\n"
                        "5.0 scheduler open_round\n"
                        "5.0 scheduler dispatch 0\n" // client 2 is still busy
                        "5.0 scheduler dispatch 1\n"
                        "5.6 client start 0\n"
                        "5.6 client start 1\n"
                        "6.6 client upload 0\n"
                        "6.7 server deliver 2\n"
                        "7.6 client upload 1\n"
                        "7.7 server deliver 0\n"
                        "7.7 server deliver 1\n"
                        "7.7 scheduler close_round\n"
                        "7.7 server evaluate\n"
                        "7.7 scheduler end\n");
  CHECK(run.summary.late_uploads == 1);
  CHECK(run.summary.client_rounds == 5);
}

TEST_CASE("a round with a deadline does not wait for a client that drops out") {
  // With seed 2 only the draw for client 1's first assignment is below 0.3.
  const auto run = run_toml(
      three_clients,
      {.over = {{"seed", "2"}, {"devices.dropout", "0.3"}, {"rounds.deadline", "5 s"}, {"rounds.per_task", "1"}},
       .trace = true});
  CHECK(events_of(run.events) == "0.0 scheduler task\n"
                                 "0.0 scheduler open_round\n"
                                 "0.0 scheduler dispatch 0\n"
                                 "0.0 scheduler dispatch 1\n"
                                 "0.0 client drop_out 1\n"
                                 "0.0 scheduler dispatch 2\n"
                                 "0.6 client start 0\n"
                                 "0.6 client start 2\n"
                                 "1.6 client upload 0\n"
                                 "2.7 server deliver 0\n"
                                 "4.6 client upload 2\n"
                                 "5.0 scheduler deadline\n"
                                 "5.0 client late 2\n"
                                 "5.0 scheduler close_round\n"
                                 "5.0 server evaluate\n"
                                 "5.0 scheduler end\n");
  CHECK(run.summary.dropped == 1);
  CHECK(run.summary.late_uploads == 1);
  CHECK(run.summary.upload_bytes == 16);
  CHECK(run.summary.download_bytes == 48); // a download counts at dispatch, even if no upload follows
}

TEST_CASE("an upload that arrives exactly at the deadline is in time") {
  const auto run = run_toml(three_clients, {.over = {{"rounds.deadline", "6700 ms"}}});
  CHECK(run.summary.late_uploads == 0);
  CHECK(run.summary.virtual_seconds == 2 * 6.7);
}

TEST_CASE("a round in which all clients drop out closes at once and leaves the model unchanged") {
  const auto run = run_toml(three_clients, {.over = {{"devices.dropout", "1.0"}}, .trace = true});
  CHECK(run.summary.dropped == 6);
  CHECK(run.summary.rounds == 2);
  CHECK(run.summary.client_rounds == 0);
  CHECK(run.summary.upload_bytes == 0);
  CHECK(run.summary.download_bytes == 6 * 16);
  CHECK(run.summary.virtual_seconds == 0.0);
  const auto untouched = run_toml(three_clients, {.over = {{"training.epochs", "0"}}});
  CHECK(run.model == untouched.model);
}

TEST_CASE("a drop-out does not delay its round or change draws of other clients") {
  const auto run = run_toml(three_clients, {.over = {{"rounds.per_task", "30"}}, .trace = true});
  const auto some =
      run_toml(three_clients, {.over = {{"rounds.per_task", "30"}, {"devices.dropout", "0.3"}}, .trace = true});
  CHECK(some.summary.dropped > 10); // of 90 dispatches; 27 are expected
  CHECK(some.summary.dropped < 45);
  CHECK(some.summary.client_rounds == 90 - some.summary.dropped);
  CHECK(run.summary.virtual_seconds == 30 * 6.7);
  CHECK(some.summary.virtual_seconds < run.summary.virtual_seconds);
}

TEST_CASE("transfer formats determine the bytes of messages") {
  const auto half = run_toml(three_clients, {.over = {{"devices.transfer_dtype", "fp16"}}});
  CHECK(half.summary.upload_bytes == 6 * 8);
  const auto quarter = run_toml(three_clients, {.over = {{"devices.transfer_dtype", "int8"}}});
  CHECK(quarter.summary.download_bytes == 6 * 4);
}
