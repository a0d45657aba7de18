#include "tools/live/prometheus_text.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <limits>
using namespace mneme;

TEST_CASE("measurements are formatted as Prometheus text, for any label values") {
  CHECK(prometheus_text(
            {{.name = "a_total", .help = "Things.", .of_kind = measurement::kind::counter, .samples = {{.value = 3.0}}},
             {.name = "b",
              .help = "Others.",
              .samples = {{.labels = {{"folder", "a \"b\"\\c\nd"}, {"task", "1"}}, .value = 0.5},
                          {.value = std::numeric_limits<double>::infinity()}}}}) ==
        "# HELP a_total Things.\n# TYPE a_total counter\na_total 3\n"
        "# HELP b Others.\n# TYPE b gauge\nb{folder=\"a \\\"b\\\"\\\\c\\nd\",task=\"1\"} 0.5\nb +Inf\n");
}

TEST_CASE("a run exports rounds, traffic, jobs and accuracies, and nothing before it begins") {
  CHECK(measurements_of({}).empty());
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
  const auto text = prometheus_text(measurements_of(run));
  for (const char* const line :
       {"mneme_run{folder=\"runs/a\",status=\"running\"} 1\n", "mneme_workers 2\n", "mneme_jobs_total 12\n",
        "mneme_fused_width_mean 3\n", "mneme_task 2\n", "mneme_rounds_total 7\n", "mneme_virtual_seconds 90\n",
        "mneme_clients_enrolled 8\n", "mneme_assignments_in_flight 3\n", "mneme_upload_bytes_total 4096\n",
        "mneme_queued_batches{asked_by=\"clients\"} 5\nmneme_queued_batches{asked_by=\"server\"} 0\n",
        "mneme_accuracy_percent 55\n", "mneme_task_accuracy_percent{task=\"2\"} 40\n"}) {
    INFO(line << "in\n" << text);
    CHECK(text.find(line) != std::string::npos);
  }
}

TEST_CASE("a run exports each of its nodes") {
  live_run run{.folder = "runs/a", .status = "running"};
  run.nodes = {
      {.address = "a:1", .workers = 4, .client_rounds = 7, .busy_seconds = 2.5, .bytes_sent = 100, .bytes_waiting = 40},
      {.address = "b:2", .workers = 1, .disconnects = 2, .disconnected_seconds = 1.5, .is_connected = false}};
  const auto text = prometheus_text(measurements_of(run));
  for (const char* const line :
       {"mneme_run_node_up{node=\"a:1\"} 1\nmneme_run_node_up{node=\"b:2\"} 0\n",
        "mneme_run_node_workers{node=\"a:1\"} 4\n", "mneme_run_node_client_rounds_total{node=\"a:1\"} 7\n",
        "mneme_run_node_busy_seconds_total{node=\"a:1\"} 2.5\n", "mneme_run_node_sent_bytes_total{node=\"a:1\"} 100\n",
        "mneme_run_node_waiting_bytes{node=\"a:1\"} 40\n", "mneme_run_node_losses_total{node=\"b:2\"} 2\n",
        "mneme_run_node_away_seconds_total{node=\"b:2\"} 1.5\n"}) {
    INFO(line << "in\n" << text);
    CHECK(text.find(line) != std::string::npos);
  }
}
