#include "tools/cli/run_metrics.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

/// Metrics without the time that follows each value.
std::string text_of(const live_run& run) {
  metric_registry metrics;
  add_run_metrics(metrics, run);
  std::string text, line;
  for (const char c : prometheus_text(metrics)) {
    line += c;
    if (c != '\n')
      continue;
    text += line.starts_with('#') ? line : line.substr(0, line.rfind(' ')) + "\n";
    line.clear();
  }
  return text;
}

void check_lines(const std::string& text, std::initializer_list<const char*> lines) {
  for (const char* const line : lines) {
    INFO(line << "in\n" << text);
    CHECK(text.find(line) != std::string::npos);
  }
}

} // namespace

TEST_CASE("prometheus_text() escapes label values and gives name, help, kind, value and time") {
  metric_registry metrics;
  set_counter(metrics, {"mneme", "a", "Things."}, std::int64_t{3});
  set_gauge(metrics, {"mneme", "b", "Others.", "seconds"}, 0.5, {{"folder", "a \"b\"\\c\nd"}, {"task", "1"}});
  const auto text = prometheus_text(metrics);
  check_lines(text, {"# HELP mneme_a_total Things.\n# TYPE mneme_a_total counter\nmneme_a_total 3 ",
                     "# HELP mneme_b_seconds Others.\n# TYPE mneme_b_seconds gauge\n"
                     "mneme_b_seconds{folder=\"a \\\"b\\\"\\\\c\\nd\",task=\"1\"} 0.500000 "});
}

TEST_CASE("add_run_metrics() adds rounds, traffic, jobs and accuracies of a run, and nothing before it starts") {
  CHECK(text_of({}).empty());
  live_run run{.folder = "runs/a", .status = "running", .jobs = 12, .batches = 4, .workers = 2, .busy_seconds = 1.5};
  run.course = {{.first = {0},
                 .last = {6},
                 .task = {1},
                 .at = virtual_time{std::chrono::seconds(90)},
                 .in_flight = 3,
                 .clients_enrolled = 8,
                 .client_rounds = 12,
                 .upload_bytes = 4096}};
  run.evaluations = {{.accuracy = 55.0, .accuracy_per_task = {70.0, 40.0}}};
  run.queues = {{.asked_by = "clients", .batches = 5}, {.asked_by = "server", .batches = 0}};
  check_lines(text_of(run),
              {"mneme_run{folder=\"runs/a\",status=\"running\"} 1\n", "mneme_workers 2\n", "mneme_jobs_total 12\n",
               "mneme_batches_total 4\n", "mneme_worker_busy_seconds_total 1.500000\n",
               "mneme_fused_width_mean 3.000000\n", "mneme_task 2\n", "mneme_rounds_total 7\n",
               "mneme_virtual_seconds 90.000000\n", "mneme_clients_enrolled 8\n", "mneme_assignments_in_flight 3\n",
               "mneme_client_rounds_total 12\n", "mneme_dropped_total 0\n", "mneme_upload_bytes_total 4096\n",
               "mneme_queued_batches{asked_by=\"clients\"} 5\nmneme_queued_batches{asked_by=\"server\"} 0\n",
               "mneme_accuracy_percent 55.000000\n", "mneme_task_accuracy_percent{task=\"2\"} 40.000000\n"});
}

TEST_CASE("add_run_metrics() adds each node, and the numbers of joined nodes and disconnects") {
  live_run run{.folder = "runs/a", .status = "running"};
  run.nodes = {
      {.address = "a:1", .workers = 4, .client_rounds = 7, .busy_seconds = 2.5, .bytes_sent = 100, .bytes_waiting = 40},
      {.address = "b:2", .workers = 1, .disconnects = 2, .disconnected_seconds = 1.5, .is_connected = false}};
  check_lines(text_of(run),
              {"mneme_run_node_up{node=\"a:1\"} 1\nmneme_run_node_up{node=\"b:2\"} 0\n",
               "mneme_run_node_workers{node=\"a:1\"} 4\n", "mneme_run_node_client_rounds_total{node=\"a:1\"} 7\n",
               "mneme_run_node_busy_seconds_total{node=\"a:1\"} 2.500000\n",
               "mneme_run_node_sent_bytes_total{node=\"a:1\"} 100\n", "mneme_run_node_waiting_bytes{node=\"a:1\"} 40\n",
               "mneme_run_node_disconnects_total{node=\"b:2\"} 2\n",
               "mneme_run_node_disconnected_seconds_total{node=\"b:2\"} 1.500000\n", "mneme_run_nodes_joined_total 2\n",
               "mneme_run_disconnects_total 2\n"});
}

TEST_CASE("pending_reason() is empty while the run computes") {
  live_view view;
  CHECK(pending_reason(view.now()) == "the run has not started");
  view.prepares("loads the scenario");
  CHECK(pending_reason(view.now()) == "loads the scenario");
  view.on_run_started("runs/a", 1, {}, {});
  CHECK(pending_reason(view.now()).empty());
  std::vector<node_record> nodes;
  view.has_nodes([&] { return nodes; }, true);
  CHECK(pending_reason(view.now()) == "waits for a node");
  nodes = {{.is_connected = false}};
  CHECK(pending_reason(view.now()) == "waits for a node");
  nodes = {{.is_connected = false}, {.is_connected = true}};
  CHECK(pending_reason(view.now()).empty());
  view.ended("done");
  CHECK(pending_reason(view.now()) == "the run is over: done");
  view.prepares("loads the scenario"); // of the next run of the command
  CHECK(pending_reason(view.now()) == "loads the scenario");
}

TEST_CASE("state_of_run() has the metrics of process, run and actors") {
  auto view = std::make_shared<live_view>();
  view->on_run_started("runs/a", 1, {}, {});
  view->has_actors([] { return std::string("caf_system_running_actors 5 1\n"); });
  check_lines(state_of_run(view).metrics(),
              {"# TYPE process_cpu_seconds_total gauge\n", "mneme_workers 1 ", "caf_system_running_actors 5 1\n"});
  view->ended("done");
  CHECK(state_of_run(view).metrics().find("caf_system") == std::string::npos);
}
