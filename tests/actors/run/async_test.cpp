// Virtual time of asynchronous runs, worked out by hand. The clients are those of tests/support/traces.hpp.
#include "runtime/population/population.hpp"
#include "tests/support/scenario_text.hpp"
#include "tests/support/traces.hpp"
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

finished_run run_async(overrides over, bool trace = true) {
  over.insert(over.begin(), {{"rounds.mode", "async"}, {"rounds.buffer", "2"}});
  return run_toml(three_clients, {.over = over, .trace = trace});
}

/// Lines of `events` that contain `word`.
std::string lines_with(const std::string& events, const std::string& word) {
  std::istringstream in(events);
  std::string text;
  for (std::string line; std::getline(in, line);)
    if (line.find(word) != std::string::npos)
      text += line + "\n";
  return text;
}

} // namespace

TEST_CASE("asynchronous run dispatches clients as they finish and steps with every second upload") {
  const auto run = run_async({});
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
                                 "2.7 scheduler dispatch 0\n" // with the old model, before the next step
                                 "2.7 server deliver 1\n"
                                 "2.7 scheduler close_round\n"
                                 "2.7 scheduler open_round\n"
                                 "2.7 scheduler dispatch 1\n" // with the new model
                                 "3.3 client start 0\n"
                                 "3.3 client start 1\n"
                                 "4.3 client upload 0\n"
                                 "4.6 client upload 2\n"
                                 "5.3 client upload 1\n"
                                 "5.4 server deliver 0\n" // stale by one step
                                 "5.4 scheduler dispatch 0\n"
                                 "5.4 server deliver 1\n"
                                 "5.4 scheduler close_round\n"
                                 "5.4 server evaluate\n"
                                 "5.4 client abandoned 2\n"
                                 "5.4 client abandoned 0\n"
                                 "5.4 scheduler end\n");
  CHECK(run.summary.rounds == 2);
  CHECK(run.summary.client_rounds == 4);
  CHECK(run.summary.virtual_seconds == 5.4);
  CHECK(run.summary.upload_bytes == 4 * 16);
  CHECK(run.summary.download_bytes == 6 * 16);
  CHECK(run.summary.staleness_mean == 0.25);
  CHECK(run.summary.staleness_max == 1);
}

TEST_CASE("FedAsync takes a server step with every upload") {
  const auto run = run_async({{"rounds.aggregation", "fedasync"}, {"rounds.per_task", "3"}});
  const auto steps = lines_with(events_of(run.events), "server deliver") +
                     lines_with(events_of(run.events), "close_round") + lines_with(events_of(run.events), "dispatch");
  CHECK(steps == "2.7 server deliver 0\n"
                 "2.7 server deliver 1\n"
                 "5.4 server deliver 0\n"
                 "2.7 scheduler close_round\n"
                 "2.7 scheduler close_round\n"
                 "5.4 scheduler close_round\n"
                 "0.0 scheduler dispatch 0\n"
                 "0.0 scheduler dispatch 1\n"
                 "0.0 scheduler dispatch 2\n"
                 "2.7 scheduler dispatch 0\n"
                 "2.7 scheduler dispatch 1\n");
  CHECK(run.summary.staleness_mean == Catch::Approx(2.0 / 3.0)); // 0, then 1, then client 0 from the first step: 1
}

TEST_CASE("asynchronous run never has more clients in flight than rounds.concurrency") {
  const auto run = run_async({{"rounds.concurrency", "2"}, {"rounds.per_task", "20"}});
  std::int64_t in_flight = 0, most = 0;
  std::istringstream in(events_of(run.events));
  for (std::string line; std::getline(in, line);) {
    in_flight += line.find("dispatch") != std::string::npos;
    in_flight -= line.find("deliver") != std::string::npos;
    most = std::max(most, in_flight);
  }
  CHECK(most == 2);
  CHECK(run.summary.client_rounds == 40);
}

TEST_CASE("a client that drops out ends within its first stage and frees its place at once") {
  // With seed 2 only the draw for client 1's first assignment is below 0.3.
  const auto run = run_async({{"seed", "2"}, {"devices.dropout", "0.3"}, {"rounds.per_task", "1"}});
  scenario from;
  from.seed = 2;
  from.clients.count = 3;
  const auto point = population(from).dropout_point({1}, 0);
  CHECK(point > 0.0);
  CHECK(point < 1.0);
  const auto when = std::to_string(0.6 + 2.0 * point).substr(0, 3); // 2 s of training from 0.6 s on
  const auto events = events_of(run.events);
  CHECK(events.find(when + " client drop_out 1\n" + when + " scheduler dispatch 1\n") != std::string::npos);
  CHECK(lines_with(events, "upload 1").find("2.6 ") == std::string::npos);
  CHECK(run.summary.dropped >= 1);
  CHECK(run.summary.client_rounds == 2);
}

TEST_CASE("late uploads cross task boundaries, and each task has its own number of steps") {
  const auto run = run_async(
      {{"tasks.kind", "class-incremental"}, {"tasks.count", "2"}, {"data.rows", "24"}, {"rounds.per_task", "1"}});
  const auto events = events_of(run.events);
  CHECK(events.substr(events.find("2.7 server deliver 1")) == "2.7 server deliver 1\n"
                                                              "2.7 scheduler close_round\n"
                                                              "2.7 server evaluate\n"
                                                              "2.7 scheduler task\n"
                                                              "2.7 scheduler open_round\n"
                                                              "2.7 scheduler dispatch 1\n"
                                                              "3.3 client start 0\n"
                                                              "3.3 client start 1\n"
                                                              "4.3 client upload 0\n"
                                                              "4.6 client upload 2\n"
                                                              "5.3 client upload 1\n"
                                                              "5.4 server deliver 0\n" // from the first task
                                                              "5.4 scheduler dispatch 0\n"
                                                              "5.4 server deliver 1\n"
                                                              "5.4 scheduler close_round\n"
                                                              "5.4 server evaluate\n"
                                                              "5.4 client abandoned 2\n"
                                                              "5.4 client abandoned 0\n"
                                                              "5.4 scheduler end\n");
  CHECK(run.summary.tasks == 2);
  CHECK(run.summary.rounds == 2);
}

TEST_CASE("evaluations count server steps and report when a target was first reached") {
  const auto run =
      run_async({{"evaluation.every", "2"}, {"rounds.per_task", "5"}, {"evaluation.targets", "[0, 100.0, 12.5]"}});
  CHECK(std::count(run.metrics.begin(), run.metrics.end(), '\n') == 3); // after steps 2, 4, and the last
  REQUIRE(run.summary.time_to_accuracy.size() == 3);
  CHECK(run.summary.time_to_accuracy[0].seconds == 5.4);
  CHECK(run.summary.time_to_accuracy[1].accuracy == 100.0);
}

TEST_CASE("a run is rejected if traces end before its clients can finish it") {
  const scratch_folder folder;
  const auto file = folder.path() / "test.toml", trace = folder.path() / "trace.csv";
  write_file(trace, "client,from,to\n0,1,2\n");
  write_file(file, std::string(three_clients));
  overrides over{{"rounds.mode", "async"},
                 {"rounds.buffer", "1"},
                 {"rounds.per_task", "3"},
                 {"devices.availability", "file"},
                 {"devices.availability_file", trace.string()}};
  const auto checked = [&] {
    const auto read = read_scenario(file, over);
    REQUIRE(read);
    return check_against_data(read->value);
  };
  const auto errors = checked();
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].where == trace.string() + ":2");
  CHECK(errors[0].text.starts_with("client 0 has the last trace, which ends at 2 s; round 2 finds no client"));
  over.push_back({"rounds.per_task", "1"}); // ends before another client is dispatched
  CHECK(checked().empty());
}

TEST_CASE("training clients ahead of time leaves events, weights and digest unchanged") {
  const auto scenario = made_scenario({{"seed", 3},
                                       {"data.shape", raw_toml("[3, 32, 32]")},
                                       {"data.rows", 120},
                                       {"tasks.kind", "single"},
                                       {"partition.kind", "iid"},
                                       {"clients.count", 12},
                                       {"rounds.mode", "async"},
                                       {"rounds.per_task", 3},
                                       {"rounds.buffer", 3},
                                       {"rounds.concurrency", 10},
                                       {"devices.dropout", 0.1},
                                       {"training.batch", 5},
                                       {"training.learning_rate", 0.1},
                                       {"evaluation.every", 0}});
  for (const auto& net : {scenario.with({{"model.name", "cnn"}}),
                          scenario.with({{"model.name", "mlp"}, {"model.hidden", raw_toml("[24]")}})}) {
    const auto alone = run_toml(net, {.over = {{"worker.fused_clients_max", "1"}}, .threads = 1, .trace = true});
    CHECK(alone.summary.fused_width_mean == 1.0);
    for (const char* width : {"4", "0"}) {
      const auto together = run_toml(net, {.over = {{"worker.fused_clients_max", width}}, .threads = 1, .trace = true});
      CHECK((together.summary.fused_width_mean > 1.2 || std::string(width) == "0")); // "0": as the net suggests
      CHECK(together.events == alone.events);
      CHECK(together.model == alone.model);
      CHECK(together.summary.run_digest == alone.summary.run_digest);
    }
  }
}
