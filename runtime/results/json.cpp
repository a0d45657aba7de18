#include "runtime/results/run_directory.hpp"
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
namespace mneme {
namespace {

using json = nlohmann::ordered_json;

json or_null(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

/// Text from outside may hold bytes that are no UTF-8; a run does not fail for that.
std::string dumped(const json& what, int indent) {
  return what.dump(indent, ' ', false, json::error_handler_t::replace);
}

/// The file's value; discarded if there is none.
json read(const std::filesystem::path& file) {
  std::ifstream in(file);
  return json::parse(in, nullptr, false);
}

void add_metrics(json& to, const continual_metrics& metrics) {
  to["average_incremental_accuracy"] = or_null(metrics.average_incremental_accuracy);
  to["average_accuracy_task_mean"] = or_null(metrics.average_accuracy_task_mean);
  to["final_accuracy"] = or_null(metrics.final_accuracy);
  to["final_accuracy_task_mean"] = or_null(metrics.final_accuracy_task_mean);
  to["forgetting"] = or_null(metrics.forgetting);
  to["forgetting_including_last"] = or_null(metrics.forgetting_including_last);
  to["forgetting_from_first"] = or_null(metrics.forgetting_from_first);
  to["backward_transfer"] = or_null(metrics.backward_transfer);
}

void add_population(json& to, const run_summary& what) {
  to["joined"] = what.joined;
  to["left"] = what.left;
  to["task_transitions"] = what.task_transitions;
  to["staleness_mean"] = or_null(what.staleness_mean);
  to["staleness_max"] = what.staleness_max ? json(*what.staleness_max) : json(nullptr);
}

void add_over_time(json& to, const run_summary& what) {
  auto& reached = to["time_to_accuracy"] = json::object();
  for (const auto& one : what.time_to_accuracy)
    reached[fmt::format("{}", one.accuracy)] = or_null(one.seconds);
  to["client_accuracy_deciles"] = what.client_accuracy_deciles ? json(*what.client_accuracy_deciles) : json(nullptr);
}

void add_costs(json& to, const run_summary& what) {
  to["upload_bytes"] = what.upload_bytes;
  to["download_bytes"] = what.download_bytes;
  to["virtual_seconds"] = what.virtual_seconds;
  to["wall_seconds"] = what.wall_seconds;
  to["cpu_seconds"] = what.cpu_seconds;
  to["client_rounds_per_second"] = what.client_rounds_per_second;
  to["fused_width_mean"] = what.fused_width_mean;
  to["worker_busy_share"] = what.worker_busy_share;
  to["peak_rss_bytes"] = what.peak_rss_bytes;
  to["device"] = what.device;
  if (what.central_data)
    to["central_data"] = true;
  for (const auto& [key, value] : what.figures)
    to[key] = value;
}

} // namespace

std::string json_text(const run_origin& what) {
  return dumped({{"scenario", what.scenario}, {"trace", what.trace}}, 2) + "\n";
}

expected<run_origin> parsed_origin(const std::filesystem::path& file) {
  auto all = read(file);
  if (!all.is_object() || !all["scenario"].is_string() || !all["trace"].is_boolean())
    return failed(file.string(), "this file does not say what was run; run the scenario again with mneme run");
  return run_origin{.scenario = all["scenario"], .trace = all["trace"]};
}

std::string status_in(const std::filesystem::path& file) {
  auto all = read(file);
  return all.is_object() && all["status"].is_string() ? all["status"] : "";
}

std::string json_text(const run_summary& what) {
  json all;
  all["mneme_version"] = MNEME_VERSION;
  all["scenario"] = what.scenario;
  all["scenario_digest"] = what.scenario_digest;
  all["run_digest"] = what.run_digest;
  if (what.trace_digest)
    all["trace_digest"] = *what.trace_digest;
  all["strategy"] = what.strategy;
  all["dataset"] = what.dataset;
  all["seed"] = what.seed;
  all["status"] = what.status;
  if (!what.error.empty())
    all["error"] = what.error;
  all["tasks"] = what.tasks;
  all["rounds"] = what.rounds;
  all["clients"] = what.clients;
  all["client_rounds"] = what.client_rounds;
  all["late_uploads"] = what.late_uploads;
  all["dropped"] = what.dropped;
  all["enrolled_max"] = what.enrolled_max;
  add_metrics(all, what.metrics);
  add_costs(all, what);
  add_over_time(all, what);
  add_population(all, what);
  return dumped(all, 2) + "\n";
}

std::string json_text(const evaluation_record& what) {
  json all;
  all["task"] = what.task.value + 1;
  all["round"] = what.round.value + 1;
  all["virtual_s"] = in_seconds(what.at);
  all["accuracy"] = what.accuracy;
  all["accuracy_per_task"] = what.accuracy_per_task;
  all["loss"] = what.loss;
  all["upload_bytes"] = what.upload_bytes;
  all["download_bytes"] = what.download_bytes;
  all["clients_enrolled"] = what.clients_enrolled;
  all["client_rounds"] = what.client_rounds;
  all["late_uploads"] = what.late_uploads;
  all["dropped"] = what.dropped;
  all["forgetting"] = or_null(what.forgetting);
  return dumped(all, -1);
}

} // namespace mneme
