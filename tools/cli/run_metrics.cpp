#include "tools/cli/run_metrics.hpp"
#include <algorithm>
namespace mneme {
namespace {

constexpr const char *mneme_prefix = "mneme", *node_prefix = "mneme_run_node";

void add_nodes(metric_registry& to, const std::vector<node_record>& nodes) {
  std::int64_t disconnects = 0;
  for (const auto& node : nodes) {
    const metric_labels labels{{"node", node.address}};
    const auto bytes = [](std::uint64_t count) { return static_cast<std::int64_t>(count); };
    disconnects += node.disconnects;
    set_gauge(to, {node_prefix, "up", "1 while the node is connected."}, std::int64_t{node.is_connected}, labels);
    set_gauge(to, {node_prefix, "workers", "Worker threads of the node."}, node.workers, labels);
    set_counter(to, {node_prefix, "client_rounds", "Client rounds that the node has computed."}, node.client_rounds,
                labels);
    set_counter(to, {node_prefix, "busy", "Time that the node's workers spent in batches.", "seconds"},
                node.busy_seconds, labels);
    set_counter(to, {node_prefix, "sent", "Bytes sent to the node.", "bytes"}, bytes(node.bytes_sent), labels);
    set_counter(to, {node_prefix, "received", "Bytes received from the node.", "bytes"}, bytes(node.bytes_received),
                labels);
    set_gauge(to, {node_prefix, "waiting", "Messages to the node in the send queue.", "bytes"},
              bytes(node.bytes_waiting), labels);
    set_counter(to, {node_prefix, "disconnects", "Disconnects of the node."}, node.disconnects, labels);
    set_counter(to, {node_prefix, "disconnected", "Time between disconnects of the node and its returns.", "seconds"},
                node.disconnected_seconds, labels);
    set_counter(to, {node_prefix, "rounds_rerun", "Client rounds of the node that another host has computed again."},
                node.rounds_rerun, labels);
  }
  set_counter(to, {"mneme_run", "nodes_joined", "Nodes that have joined, each counted once."},
              static_cast<std::int64_t>(nodes.size()));
  set_counter(to, {"mneme_run", "disconnects", "Disconnects of all nodes."}, disconnects);
}

void add_course(metric_registry& to, const timeline_bin& last) {
  set_gauge(to, {mneme_prefix, "task", "The open task, from 1."}, std::int64_t{last.task.value} + 1);
  set_counter(to, {mneme_prefix, "rounds", "Completed rounds, or server steps."}, std::int64_t{last.last.value} + 1);
  set_gauge(to, {mneme_prefix, "virtual", "Virtual time.", "seconds"}, in_seconds(last.at));
  set_gauge(to, {mneme_prefix, "clients_enrolled", "Enrolled clients."}, last.clients_enrolled);
  set_gauge(to, {mneme_prefix, "assignments_in_flight", "Clients with an unfinished round."}, last.in_flight);
  set_counter(to, {mneme_prefix, "client_rounds", "Delivered client rounds."}, last.client_rounds);
  set_counter(to, {mneme_prefix, "late_uploads", "Uploads after their deadline."}, last.late_uploads);
  set_counter(to, {mneme_prefix, "dropped", "Client rounds without an upload."}, last.dropped);
  set_counter(to, {mneme_prefix, "upload", "Bytes uploaded by clients.", "bytes"}, last.upload_bytes);
  set_counter(to, {mneme_prefix, "download", "Bytes downloaded by clients.", "bytes"}, last.download_bytes);
}

void add_accuracy(metric_registry& to, const evaluation_record& last) {
  set_gauge(to, {mneme_prefix, "accuracy", "Accuracy over all tasks seen, at the last evaluation.", "percent"},
            last.accuracy);
  for (std::size_t task = 0; task < last.accuracy_per_task.size(); ++task)
    set_gauge(to, {mneme_prefix, "task_accuracy", "Accuracy on each task, at the last evaluation.", "percent"},
              last.accuracy_per_task[task], {{"task", std::to_string(task + 1)}});
}

} // namespace

void add_run_metrics(metric_registry& to, const live_run& run) {
  if (run.folder.empty())
    return;
  set_gauge(to, {mneme_prefix, "run", "1 for the current run, with its folder and status."}, std::int64_t{1},
            {{"folder", run.folder.string()}, {"status", run.status}});
  set_gauge(to, {mneme_prefix, "workers", "Workers of the run's process."}, run.workers);
  set_counter(to, {mneme_prefix, "worker_busy", "Time that all workers spent in batches.", "seconds"},
              run.busy_seconds);
  set_counter(to, {mneme_prefix, "jobs", "Completed jobs of clients."}, run.jobs);
  set_counter(to, {mneme_prefix, "batches", "Completed batches of fused jobs."}, run.batches);
  if (run.batches > 0)
    set_gauge(to, {mneme_prefix, "fused_width_mean", "Jobs per batch."},
              static_cast<double>(run.jobs) / static_cast<double>(run.batches));
  for (const auto& queue : run.queues)
    set_gauge(to, {mneme_prefix, "queued_batches", "Batches that wait for a worker of this process."}, queue.batches,
              {{"asked_by", queue.asked_by}});
  if (!run.nodes.empty())
    add_nodes(to, run.nodes);
  if (!run.course.empty())
    add_course(to, run.course.back());
  if (!run.evaluations.empty())
    add_accuracy(to, run.evaluations.back());
}

std::string pending_reason(const live_run& run) {
  if (!run.pending.empty())
    return run.pending;
  if (run.status != "running")
    return run.status.empty() ? "the run has not started" : "the run is over: " + run.status;
  const bool has_host = !run.needs_node || std::any_of(run.nodes.begin(), run.nodes.end(),
                                                       [](const node_record& node) { return node.is_connected; });
  return has_host ? "" : "waits for a node";
}

process_state state_of_run(std::shared_ptr<const live_view> view) {
  return {.metrics =
              [view] {
                metric_registry metrics;
                add_process_metrics(metrics);
                add_run_metrics(metrics, view->now());
                return prometheus_text(metrics) + view->actor_metrics();
              },
          .pending = [view] { return pending_reason(view->now()); }};
}

} // namespace mneme
