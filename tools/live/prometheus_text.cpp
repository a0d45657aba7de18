#include "tools/live/prometheus_text.hpp"
#include <cmath>
#include <fmt/format.h>
namespace mneme {
namespace {

std::string escaped_label(const std::string& value) {
  std::string text;
  for (const char c : value)
    if (c == '\n')
      text += "\\n";
    else if (c == '\\' || c == '"')
      text += {'\\', c};
    else
      text += c;
  return text;
}

std::string value_text_of(double value) {
  if (std::isnan(value))
    return "NaN";
  if (std::isinf(value))
    return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

measurement counter(const char* name, const char* help, double value) {
  return {.name = name, .help = help, .of_kind = measurement::kind::counter, .samples = {{.value = value}}};
}
measurement gauge(const char* name, const char* help, double value) {
  return {.name = name, .help = help, .samples = {{.value = value}}};
}

/// Adds one sample per node to a measurement, labeled with the node's address.
measurement by_node(const std::vector<node_record>& nodes, measurement shown, double (*value)(const node_record&)) {
  for (const auto& node : nodes)
    shown.samples.push_back({.labels = {{"node", node.address}}, .value = value(node)});
  return shown;
}

void add_nodes(std::vector<measurement>& measurements, const std::vector<node_record>& nodes) {
  using enum measurement::kind;
  const auto add = [&](const char* name, const char* help, measurement::kind of_kind,
                       double (*value)(const node_record&)) {
    measurements.push_back(by_node(nodes, {.name = name, .help = help, .of_kind = of_kind}, value));
  };
  add("mneme_run_node_up", "1 while the node takes part.", gauge,
      [](const auto& n) { return n.is_connected ? 1.0 : 0.0; });
  add("mneme_run_node_workers", "Its threads that compute.", gauge,
      [](const auto& n) { return static_cast<double>(n.workers); });
  add("mneme_run_node_client_rounds_total", "Rounds of clients that it has computed.", counter,
      [](const auto& n) { return static_cast<double>(n.client_rounds); });
  add("mneme_run_node_busy_seconds_total", "Seconds in which its workers computed.", counter,
      [](const auto& n) { return n.busy_seconds; });
  add("mneme_run_node_sent_bytes_total", "To the node.", counter,
      [](const auto& n) { return static_cast<double>(n.bytes_sent); });
  add("mneme_run_node_received_bytes_total", "From the node.", counter,
      [](const auto& n) { return static_cast<double>(n.bytes_received); });
  add("mneme_run_node_waiting_bytes", "Messages to the node that wait for the network.", gauge,
      [](const auto& n) { return static_cast<double>(n.bytes_waiting); });
  add("mneme_run_node_losses_total", "How often it was lost.", counter,
      [](const auto& n) { return static_cast<double>(n.disconnects); });
  add("mneme_run_node_away_seconds_total", "For how long it was lost until it was back.", counter,
      [](const auto& n) { return n.disconnected_seconds; });
}

} // namespace

std::string prometheus_text(const std::vector<measurement>& measurements) {
  std::string text;
  for (const auto& shown : measurements) {
    const char* const kind = shown.of_kind == measurement::kind::counter ? "counter" : "gauge";
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", shown.name, shown.help, kind);
    for (const auto& sample : shown.samples) {
      std::string labels;
      for (const auto& [name, value] : sample.labels)
        labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", name, escaped_label(value));
      text +=
          fmt::format("{}{} {}\n", shown.name, labels.empty() ? "" : "{" + labels + "}", value_text_of(sample.value));
    }
  }
  return text;
}

std::vector<measurement> measurements_of(const live_run& run) {
  if (run.folder.empty())
    return {};
  std::vector<measurement> measurements{
      {.name = "mneme_run",
       .help = "1 for the run that is served, with its folder and how it stands.",
       .samples = {{.labels = {{"folder", run.folder.string()}, {"status", run.status}}, .value = 1.0}}},
      gauge("mneme_workers", "Workers of the run.", static_cast<double>(run.workers)),
      counter("mneme_worker_busy_seconds_total", "Seconds in which workers computed, all together.", run.busy_seconds),
      counter("mneme_jobs_total", "Jobs of clients that ran.", static_cast<double>(run.jobs)),
      counter("mneme_batches_total", "Batches that they were fused to.", static_cast<double>(run.batches))};
  if (run.batches > 0)
    measurements.push_back(gauge("mneme_fused_width_mean", "Jobs of a batch.",
                                 static_cast<double>(run.jobs) / static_cast<double>(run.batches)));
  if (!run.queues.empty()) {
    measurement queued{.name = "mneme_queued_batches", .help = "Batches that wait for a worker of this process."};
    for (const auto& queue : run.queues)
      queued.samples.push_back({.labels = {{"asked_by", queue.asked_by}}, .value = static_cast<double>(queue.batches)});
    measurements.push_back(std::move(queued));
  }
  if (!run.nodes.empty())
    add_nodes(measurements, run.nodes);
  if (!run.course.empty()) {
    const auto& last = run.course.back();
    const auto count = [](std::int64_t value) { return static_cast<double>(value); };
    measurements.push_back(gauge("mneme_task", "The open task, from 1.", last.task.value + 1.0));
    measurements.push_back(
        counter("mneme_rounds_total", "Rounds, or server steps, that are over.", last.last.value + 1.0));
    measurements.push_back(gauge("mneme_virtual_seconds", "Virtual time.", in_seconds(last.at)));
    measurements.push_back(gauge("mneme_clients_enrolled", "Clients that take part.", count(last.clients_enrolled)));
    measurements.push_back(gauge("mneme_assignments_in_flight", "Clients at work.", count(last.in_flight)));
    measurements.push_back(
        counter("mneme_client_rounds_total", "Rounds of clients that were delivered.", count(last.client_rounds)));
    measurements.push_back(
        counter("mneme_late_uploads_total", "Uploads after their deadline.", count(last.late_uploads)));
    measurements.push_back(
        counter("mneme_dropped_total", "Rounds of clients that came to nothing.", count(last.dropped)));
    measurements.push_back(counter("mneme_upload_bytes_total", "Bytes from clients.", count(last.upload_bytes)));
    measurements.push_back(counter("mneme_download_bytes_total", "Bytes to clients.", count(last.download_bytes)));
  }
  if (!run.evaluations.empty()) {
    const auto& last = run.evaluations.back();
    measurements.push_back(
        gauge("mneme_accuracy_percent", "Accuracy over all tasks seen, as last evaluated.", last.accuracy));
    measurement by_task{.name = "mneme_task_accuracy_percent", .help = "The same, task by task."};
    for (std::size_t task = 0; task < last.accuracy_per_task.size(); ++task)
      by_task.samples.push_back(
          {.labels = {{"task", std::to_string(task + 1)}}, .value = last.accuracy_per_task[task]});
    measurements.push_back(std::move(by_task));
  }
  return measurements;
}

} // namespace mneme
