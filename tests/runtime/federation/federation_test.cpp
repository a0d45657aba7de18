// A federation without actors: a few clients whose virtual times can be computed by hand.
//              download            training      upload                 arrives, after its dispatch
//   client 0   0.1 + 0.5 = 0.6 s   4 / 4 = 1 s   0.1 + 1.0 = 1.1 s      2.7 s
//   client 1   0.1 + 0.5 = 0.6 s   4 / 2 = 2 s   0.1 + 0.0 = 0.1 s      2.7 s
//   client 2   0.1 + 0.5 = 0.6 s   4 / 1 = 4 s   0.1 + 2.0 = 2.1 s      6.7 s
// 16 bytes take 1 s at 0.000128 Mbit/s; a bandwidth of 0 is instantaneous. Client 1's upload arrives after client 0's,
// because it was sent later.
#include "runtime/federation/federation.hpp"
#include "tests/runtime/federation/model_check/player.hpp"
#include "tests/runtime/federation/three_clients.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Formats "time actor event client" per event, with times truncated to a tenth.
std::string events_of(const run_outcome& run) {
  std::string text;
  for (const auto& event : run.events) {
    const auto tenths = event.at.time_since_epoch() / 100ms;
    text += std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " " + event.actor + " " + event.event;
    text += event.client ? " " + std::to_string(event.client->value) + "\n" : "\n";
  }
  return text;
}

/// Plays the same with reports in random order.
run_outcome played(const scenario& from) { return played(toy_of(from), {.seed = 5, .in_order = false}); }

} // namespace

TEST_CASE("a federation without actors gives the round's event times worked out by hand") {
  const auto run = played(three_clients());
  CHECK(events_of(run) == "0.0 scheduler task\n"
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
  CHECK(run.report.upload_bytes == 48);
  CHECK(run.report.download_bytes == 48);
  CHECK(run.report.client_rounds == 3);
}

TEST_CASE("a federation without actors folds a late upload that is kept into the round open at its arrival") {
  auto from = three_clients();
  from.rounds.per_task = 2;
  from.rounds.deadline = 5s;
  from.rounds.late = late_policy::keep;
  const auto run = played(from);
  CHECK(events_of(run).substr(events_of(run).find("5.0 scheduler deadline")) ==
        "5.0 scheduler deadline\n"
        "5.0 client late 2\n"
        "5.0 scheduler close_round\n"
        "5.0 scheduler open_round\n"
        "5.0 scheduler dispatch 0\n" // client 2 is still working
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
  CHECK(run.report.late_uploads == 1);
}

TEST_CASE("work due at its deadline is released with the others, and work due later never") {
  for (const auto deadline : {6700ms, 6699ms}) {
    auto from = three_clients();
    from.rounds.deadline = deadline;
    from.rounds.late = late_policy::drop;
    federation run(toy_of(from).settings);
    run.begin();
    run.handle(task_plan{});
    opened_round opened{.in = std::make_shared<const broadcast>(broadcast{.weights = as_tensors(1, 16)}), .bytes = 16};
    run.handle(opened);
    wave_report waiting;
    for (std::uint64_t id = 0; id < 3; ++id)
      waiting.issued.push_back({.id = {{id}, 0, 0}, .rows = 4, .width = 64, .compute_duration = 1s * (1 << id)});
    run.handle(waiting);
    std::vector<federation_command> commands;
    run.take_commands(commands);
    const auto* const wanted = std::get_if<release>(&commands.back());
    REQUIRE(wanted);
    std::size_t released = 0;
    for (const auto& batch : wanted->batches)
      released += batch.size();
    CHECK(released == (deadline == 6700ms ? 3 : 2)); // client 2's upload arrives after 6.7 s
    CHECK(played(from).report.late_uploads == (deadline == 6700ms ? 0 : 1));
  }
}

TEST_CASE("a federation without actors refills places as uploads arrive in asynchronous mode") {
  auto from = three_clients();
  from.rounds.mode = round_mode::async;
  from.rounds.concurrency = 3;
  from.rounds.buffer = 2;
  const auto run = played(from);
  CHECK_THAT(events_of(run), ContainsSubstring("2.7 server deliver 0\n"
                                               "2.7 scheduler dispatch 0\n"
                                               "2.7 server deliver 1\n"
                                               "2.7 scheduler close_round\n"
                                               "2.7 server evaluate\n"
                                               "2.7 client abandoned 2\n" // in dispatch order
                                               "2.7 client abandoned 0\n"
                                               "2.7 scheduler end\n"));
}

//              to the proxy            from the proxy, 24 bytes
//   client 0   0.1 + 2.0 = 2.1 s       0.1 + 3.0 = 3.1 s
//   client 1   0.1 + 0.0 = 0.1 s       0.1 + 0.0 = 0.1 s
//   client 2   0.1 + 1.0 = 1.1 s       0.1 + 1.5 = 1.6 s
TEST_CASE("proxy messages use links of their own, and advice is sent with the next broadcast") {
  auto from = three_clients();
  from.rounds.per_task = 2;
  from.devices.proxy_uplink_mbit = std::vector{0.000064, 0.0, 0.000128};
  from.devices.proxy_downlink_mbit = std::vector{0.000064, 0.0, 0.000128};
  auto toy = toy_of(from);
  toy.settings.upload_size_known = false;
  toy.settings.other_parties = {party_id::proxy};
  toy.upload_bytes_of_all = toy.proxy_bytes_of_all = 16;
  const auto run = played(toy, {.seed = 5, .in_order = false});
  CHECK(events_of(run) == "0.0 scheduler task\n"
                          "0.0 scheduler open_round\n"
                          "0.0 scheduler dispatch 0\n"
                          "0.0 scheduler dispatch 1\n"
                          "0.0 scheduler dispatch 2\n"
                          "0.6 client start 0\n"
                          "0.6 client start 1\n"
                          "0.6 client start 2\n"
                          "1.6 client upload 0\n"
                          "1.6 client to_proxy 0\n"
                          "2.6 client upload 1\n"
                          "2.6 client to_proxy 1\n"
                          "2.7 proxy receive 1\n"
                          "2.7 server deliver 1\n"
                          "3.7 proxy receive 0\n"
                          "3.7 server deliver 0\n" // it reached the server a second ago
                          "4.6 client upload 2\n"
                          "4.6 client to_proxy 2\n"
                          "5.7 proxy receive 2\n"
                          "6.7 server deliver 2\n"
                          "6.7 scheduler close_round\n"
                          "6.7 proxy advise\n"
                          "6.7 scheduler open_round\n"
                          "6.7 scheduler dispatch 0\n"
                          "6.7 scheduler dispatch 1\n"
                          "6.7 scheduler dispatch 2\n"
                          "7.3 client start 1\n" // the broadcast arrives last
                          "8.3 client start 2\n" // the advice arrives last
                          "9.3 client upload 1\n"
                          "9.3 client to_proxy 1\n"
                          "9.4 proxy receive 1\n"
                          "9.4 server deliver 1\n"
                          "9.8 client start 0\n"
                          "10.8 client upload 0\n"
                          "10.8 client to_proxy 0\n"
                          "12.3 client upload 2\n"
                          "12.3 client to_proxy 2\n"
                          "12.9 proxy receive 0\n"
                          "12.9 server deliver 0\n"
                          "13.4 proxy receive 2\n"
                          "14.4 server deliver 2\n"
                          "14.4 scheduler close_round\n"
                          "14.4 proxy advise\n"
                          "14.4 server evaluate\n"
                          "14.4 scheduler end\n");
  CHECK(run.report.proxy_bytes == 2 * (3 * 16 + 8) + 3 * 24);
  CHECK(run.report.upload_bytes == 2 * 48);
  CHECK(run.report.download_bytes == 2 * 48);
}

TEST_CASE("clients outside the cohort observe their rows, and the round waits for them") {
  for (const bool costs : {true, false}) {
    auto from = three_clients();
    from.rounds.cohort = 1;
    auto toy = toy_of(from);
    toy.settings.observers_cost_time = costs;
    toy.plans = {{.observers = 5}}; // only two exist
    const auto run = played(toy, {.seed = 5, .in_order = false});
    CHECK(run.report.client_rounds == 1); // observing is not a client-round
    CHECK(run.report.observations == 2);
    CHECK(run.report.upload_bytes == 16);
    CHECK(run.report.download_bytes == (costs ? 48 : 16));
    CHECK(events_of(run) == (costs ? "0.0 scheduler task\n"
                                     "0.0 scheduler open_round\n"
                                     "0.0 scheduler dispatch 0\n"
                                     "0.0 scheduler observe 1\n"
                                     "0.0 scheduler observe 2\n"
                                     "0.6 client start 0\n"
                                     "0.6 client start 1\n"
                                     "0.6 client start 2\n"
                                     "1.6 client upload 0\n"
                                     "2.6 client observed 1\n"
                                     "2.7 server deliver 0\n"
                                     "4.6 client observed 2\n"
                                     "4.6 scheduler close_round\n"
                                     "4.6 server evaluate\n"
                                     "4.6 scheduler end\n"
                                   : "0.0 scheduler task\n"
                                     "0.0 scheduler open_round\n"
                                     "0.0 scheduler dispatch 0\n"
                                     "0.0 scheduler observe 1\n"
                                     "0.0 scheduler observe 2\n"
                                     "0.0 client start 1\n"
                                     "0.0 client start 2\n"
                                     "0.0 client observed 1\n"
                                     "0.0 client observed 2\n"
                                     "0.6 client start 0\n"
                                     "1.6 client upload 0\n"
                                     "2.7 server deliver 0\n"
                                     "2.7 scheduler close_round\n"
                                     "2.7 server evaluate\n"
                                     "2.7 scheduler end\n"));
  }
}

TEST_CASE("an upload whose size differs from the declared one ends the run with an error") {
  for (const bool second_stage : {false, true}) {
    auto toy = toy_of(three_clients());
    federation run(toy.settings);
    std::vector<federation_command> commands;
    run.begin();
    run.handle(task_plan{});
    opened_round opened{.in = std::make_shared<const broadcast>(broadcast{.weights = as_tensors(1, 16)}), .bytes = 16};
    run.handle(opened);
    run.take_commands(commands);
    auto* const start = std::get_if<start_rounds>(&commands.back());
    REQUIRE(start);
    CHECK(start->at_once);
    wave_report first{.last = false}, second;
    first.released.emplace();
    for (const auto& given : start->assignments)
      first.issued.push_back({.id = {given.id, 0, 0}, .compute_duration = 1s});
    run.handle(first);
    if (second_stage)
      second.issued.push_back({.id = {start->assignments.front().id, 1, 0}, .compute_duration = 1s});
    else
      second.finished.push_back({.id = start->assignments.front().id, .bytes = {8}});
    run.handle(second);
    run.take_commands(commands);
    const auto* const ended = std::get_if<run_report>(&commands.back());
    REQUIRE(ended);
    CHECK(ended->status == run_status::failed);
    CHECK_THAT(ended->error, ContainsSubstring("client 0, round 1, job 0."));
    run.handle(second); // inputs after the end are ignored
    run.take_commands(commands);
    CHECK(commands.empty());
  }
}

TEST_CASE("a stopped run ends after the current event, with a checkpoint if checkpoints are enabled") {
  for (const std::int64_t every : {0, 1}) {
    auto toy = toy_of(three_clients());
    toy.settings.checkpoint.every = every;
    federation run(toy.settings);
    std::vector<federation_command> commands;
    run.begin();
    run.stop();
    run.handle(task_plan{});
    run.take_commands(commands);
    if (every == 0) {
      CHECK(std::get<run_report>(commands.back()).status == run_status::interrupted);
      continue;
    }
    auto* const save = std::get_if<save_state>(&commands.back());
    REQUIRE(save);
    saved_state saved{.state = std::move(save->so_far)};
    run.handle(saved);
    run.take_commands(commands);
    CHECK(std::holds_alternative<save_checkpoint>(commands.back()));
    run.on_checkpoint_written();
    run.take_commands(commands);
    CHECK(std::get<run_report>(commands.back()).status == run_status::interrupted);
  }
}

TEST_CASE("an inconsistent checkpoint is refused with the reason, for any bytes") {
  auto from = three_clients();
  from.rounds.mode = round_mode::async;
  from.rounds.concurrency = 3;
  from.rounds.buffer = 2;
  from.rounds.per_task = 4;
  from.checkpoint = {.every = 1, .force = true};
  const auto toy = toy_of(from);
  const auto saved = played(toy, {.seed = 5}).checkpoint; // with active clients
  REQUIRE(saved);

  const auto error_text_of = [&](const std::vector<std::byte>& bytes) {
    federation run(toy.settings);
    run.resume(archive(std::make_shared<const std::vector<std::byte>>(bytes), 0, bytes.size()));
    std::vector<federation_command> commands;
    run.take_commands(commands);
    REQUIRE_FALSE(commands.empty());
    const auto* const ended = std::get_if<run_report>(&commands.back());
    return ended ? ended->error : std::string();
  };
  CHECK(error_text_of(*saved).empty());
  std::int64_t refused = 0;
  for (std::size_t at = 0; at < saved->size(); ++at)
    for (const int value : {0x00, 0x01, 0x7F, 0xFF}) {
      auto forged = *saved;
      forged[at] = static_cast<std::byte>(value);
      const auto error_text = error_text_of(forged);
      CHECK((error_text.empty() || error_text.starts_with("the checkpoint cannot be read: it ")));
      refused += error_text.empty() ? 0 : 1;
    }
  CHECK(refused > std::ssize(*saved));
}

TEST_CASE("a checkpoint with an additional client is refused at the first mention of that client in flight") {
  auto from = three_clients();
  from.rounds.mode = round_mode::async;
  from.rounds.concurrency = 4;
  from.rounds.buffer = 2;
  from.rounds.per_task = 4;
  from.checkpoint = {.every = 1, .force = true};
  auto more = from;
  more.clients.count = 4;
  more.devices.rows_per_second = std::vector{4.0, 2.0, 1.0, 0.01}; // the last client never finishes its job
  more.devices.uplink_mbit = 0.000128;
  const auto saved = played(toy_of(more), {.seed = 5}).checkpoint;
  REQUIRE(saved);
  from.devices.uplink_mbit = 0.000128;
  federation run(toy_of(from).settings);
  run.resume(archive(saved, 0, saved->size()));
  std::vector<federation_command> commands;
  run.take_commands(commands);
  REQUIRE_FALSE(commands.empty());
  const auto* const ended = std::get_if<run_report>(&commands.back());
  REQUIRE(ended);
  CHECK(ended->error == "the checkpoint cannot be read: it has an assignment of an unknown client");
}
