// Effects of clients that enroll, leave, sleep and change task.
#include "tests/support/scenario_text.hpp"
#include "tests/support/traces.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Scenario with all kinds of churn, on a net small enough for many runs.
const auto restless = restless_scenario().with({{"enrolment.rejoin", "without-memory"}, {"rounds.cohort", 8}});

finished_run run_restless(const std::string& mode, overrides over = {}, std::int64_t threads = 2, bool trace = false) {
  over.insert(over.begin(), {"rounds.mode", mode});
  return run_toml(restless, {.over = over, .threads = threads, .trace = trace});
}

struct line {
  double at = 0.0;
  std::string event{}, client{}, task{};
};
std::vector<line> lines_of(const std::string& csv) {
  std::istringstream in(csv);
  std::string text;
  std::getline(in, text);
  std::vector<line> lines;
  while (std::getline(in, text)) {
    std::istringstream cells(text);
    std::string at, actor, event, client, task;
    for (auto* cell : {&at, &actor, &event, &client, &task})
      std::getline(cells, *cell, ',');
    lines.push_back({.at = std::stod(at), .event = event, .client = client, .task = task});
  }
  return lines;
}

} // namespace

TEST_CASE("clients are dispatched only if enrolled, idle and online, in both round modes") {
  for (const char* mode : {"sync", "async"}) {
    INFO(mode);
    const auto run = run_restless(mode, {}, 2, true);
    CHECK(run.summary.status == "done");
    CHECK(run.summary.joined > 40);
    CHECK(run.summary.left > 5);
    CHECK(run.summary.task_transitions > 60);
    std::map<std::string, bool> enrolled, busy;
    std::int64_t lost = 0;
    for (const auto& line : lines_of(run.events)) {
      if (line.event == "enrol")
        enrolled[line.client] = true;
      if (line.event == "dispatch") {
        REQUIRE(enrolled[line.client]);
        REQUIRE_FALSE(busy[line.client]);
        busy[line.client] = true;
      }
      if (line.event == "left") {
        lost += busy[line.client];
        enrolled[line.client] = false;
      }
      if (line.event == "left" || line.event == "deliver" || (line.event == "drop_out" && std::string(mode) == "async"))
        busy[line.client] = false;
      if (line.event == "close_round" && std::string(mode) == "sync")
        busy.clear();
    }
    CHECK(lost > 0); // some left while they worked
  }
}

TEST_CASE("a run with churn has one digest for all threads, widths, shards, budgets and memory limits") {
  for (const char* mode : {"sync", "async"}) {
    const auto expected = run_restless(mode, {}, 1);
    for (const std::int64_t threads : {2, 8})
      CHECK(run_restless(mode, {}, threads).summary.run_digest == expected.summary.run_digest);
    CHECK(run_restless(mode, {{"worker.shards", "2"}}, 16).summary.run_digest == // two control threads
          expected.summary.run_digest);
    const std::vector<std::pair<std::string, std::vector<std::string>>> table{
        {"worker.fused_clients_max", {"1", "4"}},
        {"worker.shards", {"1", "2", "5"}},
        {"worker.lookahead_memory", {"1 B", "3 KiB"}},
        {"clients.memory_limit", {"1 B"}}};
    for (const auto& [key, values] : table)
      for (const auto& value : values) {
        INFO(mode << ", " << key << " = " << value);
        const auto run = run_restless(mode, {{key, value}});
        CHECK(run.summary.run_digest == expected.summary.run_digest);
        CHECK(run.model == expected.model);
      }
  }
}

TEST_CASE("clients with staggered tasks train on rows and classes of their own task") {
  // Two tasks of twelve rows: client c has four rows of each. The server opens task 2 after the first two uploads. With
  // a spread of 1000 s no client enters it before the run ends. finetune's loss covers only a client's own classes, so
  // labels of other tasks would be rejected.
  for (const char* method : {"fedavg", "finetune"}) {
    const overrides two_tasks{{"tasks.kind", "class-incremental"},
                              {"tasks.count", "2"},
                              {"data.rows", "24"},
                              {"data.classes", "4"},
                              {"rounds.mode", "async"},
                              {"rounds.buffer", "2"},
                              {"rounds.per_task", "2"},
                              {"strategy.name", method}};
    auto late = two_tasks, at_once = two_tasks, together = two_tasks;
    late.insert(late.end(), {{"tasks.transition", "staggered"}, {"tasks.transition_spread", "1000 s"}});
    at_once.insert(at_once.end(), {{"tasks.transition", "staggered"}, {"tasks.transition_spread", "0 s"}});
    const auto stay = run_toml(three_clients, {.over = late}), go = run_toml(three_clients, {.over = at_once});
    CHECK(stay.summary.task_transitions == 0);
    CHECK(go.summary.task_transitions == 3);
    CHECK(go.model == run_toml(three_clients, {.over = together}).model);
    CHECK(stay.model != go.model);
  }
}

TEST_CASE("client accuracies weight the predictor's test accuracy by the client's rows") {
  const auto run = run_restless("async", {{"evaluation.fairness", "true"}, {"partition.kind", "class-share"}});
  REQUIRE(run.summary.client_accuracy_deciles);
  const auto& deciles = *run.summary.client_accuracy_deciles;
  REQUIRE(deciles.size() == 9);
  CHECK(std::is_sorted(deciles.begin(), deciles.end()));
  CHECK(deciles.front() >= 0.0);
  CHECK(deciles.back() <= 100.0);
  CHECK(deciles.front() < deciles.back());
  const auto alike = run_restless("async", {{"evaluation.fairness", "true"},
                                            {"partition.kind", "class-share"},
                                            {"partition.class_share", "1"},
                                            {"rounds.per_task", "2"}});
  // Every client holds all classes in the file's proportions, like the test rows.
  CHECK(std::abs(alike.summary.client_accuracy_deciles->front() - *alike.summary.metrics.final_accuracy) < 0.5);
}
