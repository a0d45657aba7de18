#include "runtime/base/disk_file.hpp"
#include "runtime/results/run_directory.hpp"
#include <fmt/format.h>
#include <nlohmann/json.hpp>
namespace mneme {
namespace {

using json = nlohmann::ordered_json;

constexpr std::uint64_t summary_bytes_max = std::uint64_t{1} << 26U;

json or_null(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

/// Serializes JSON. Replaces invalid UTF-8, because external text must not cause an exception.
std::string dumped(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

/// Parses the file. On failure returns a value for which is_discarded() is true.
json read(const std::filesystem::path& file) {
  const auto text = text_of_file(file, summary_bytes_max);
  return text ? json::parse(*text, nullptr, false) : json(json::value_t::discarded);
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

void add_population(json& to, const run_summary& summary) {
  to["joined"] = summary.joined;
  to["left"] = summary.left;
  to["task_transitions"] = summary.task_transitions;
  to["staleness_mean"] = or_null(summary.staleness_mean);
  to["staleness_max"] = summary.staleness_max ? json(*summary.staleness_max) : json(nullptr);
}

void add_nodes(json& to, const run_summary& summary) {
  for (const auto& node : summary.nodes) {
    to["nodes"].push_back({{"address", node.address},
                           {"name", node.name},
                           {"workers", node.workers},
                           {"client_rounds", node.client_rounds},
                           {"busy_seconds", node.busy_seconds},
                           {"bytes_sent", node.bytes_sent},
                           {"bytes_received", node.bytes_received},
                           {"disconnects", node.disconnects},
                           {"disconnected_seconds", node.disconnected_seconds},
                           {"rounds_rerun", node.rounds_rerun}});
    if (!node.rejection_reason.empty())
      to["nodes"].back()["rejection_reason"] = node.rejection_reason;
  }
}

void add_personal(json& to, const std::optional<personal_accuracies>& personal) {
  if (!personal)
    return;
  to["personal_clients"] = personal->clients;
  to["personal_accuracy_before"] = personal->before;
  to["personal_accuracy"] = personal->mean;
  to["personal_accuracy_deciles"] = personal->deciles;
}

void add_over_time(json& to, const run_summary& summary) {
  auto& reached = to["time_to_accuracy"] = json::object();
  for (const auto& target : summary.time_to_accuracy)
    reached[fmt::format("{}", target.accuracy)] = or_null(target.seconds);
  to["client_accuracy_deciles"] =
      summary.client_accuracy_deciles ? json(*summary.client_accuracy_deciles) : json(nullptr);
  add_personal(to, summary.personal);
}

void add_costs(json& to, const run_summary& summary) {
  to["upload_bytes"] = summary.upload_bytes;
  to["download_bytes"] = summary.download_bytes;
  to["virtual_seconds"] = summary.virtual_seconds;
  to["wall_seconds"] = summary.wall_seconds;
  to["cpu_seconds"] = summary.cpu_seconds;
  to["client_rounds_per_second"] = summary.client_rounds_per_second;
  to["fused_width_mean"] = summary.fused_width_mean;
  to["worker_busy_share"] = summary.worker_busy_share;
  to["peak_rss_bytes"] = summary.peak_rss_bytes;
  to["device"] = summary.device;
  if (summary.server_trains_on_rows)
    to["central_data"] = true;
  for (const auto& [key, value] : summary.figures)
    to[key] = value;
}

} // namespace

std::string json_text(const run_origin& origin) {
  return dumped({{"scenario", origin.scenario},
                 {"scenario_digest", origin.scenario_digest},
                 {"data_digest", origin.data_digest},
                 {"mneme_version", MNEME_VERSION},
                 {"trace", origin.trace},
                 {"files", origin.files},
                 {"data_files", origin.data_files}},
                2) +
         "\n";
}

expected<run_origin> parse_origin(const std::filesystem::path& file) {
  auto object = read(file);
  if (!object.is_object() || !object["scenario"].is_string() || !object["trace"].is_boolean())
    return failed(file.string(), "this file does not describe the run; run the scenario again with mneme run");
  const auto text = [&](const char* name) {
    return object[name].is_string() ? object[name].get<std::string>() : std::string();
  };
  const auto texts = [&](const char* name) {
    std::map<std::string, std::string> listed;
    if (const auto member = object.find(name); member != object.end() && member->is_object())
      for (const auto& [key, value] : member->items())
        if (value.is_string())
          listed[key] = value.get<std::string>();
    return listed;
  };
  return run_origin{.scenario = object["scenario"],
                    .scenario_digest = text("scenario_digest"),
                    .data_digest = text("data_digest"),
                    .trace = object["trace"],
                    .files = texts("files"),
                    .data_files = texts("data_files")};
}

expected<std::string> status_in(const std::filesystem::path& file) {
  std::error_code none;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file, none)))
    return std::string();
  auto text = unreadable_text(file, summary_bytes_max);
  if (text.empty()) {
    auto object = read(file);
    if (object.is_object() && object["status"].is_string())
      return object["status"].get<std::string>();
    text = "is damaged: expected one JSON object with a status";
  }
  return failed(file.string(), text + "; move the file away and resume the run, which writes it again");
}

std::string json_text(const run_summary& summary) {
  json object;
  object["mneme_version"] = MNEME_VERSION;
  object["scenario"] = summary.scenario;
  object["scenario_digest"] = summary.scenario_digest;
  object["run_digest"] = summary.run_digest;
  object["digest_epoch"] = digest_epoch;
  if (summary.trace_digest)
    object["trace_digest"] = *summary.trace_digest;
  object["strategy"] = summary.strategy;
  object["dataset"] = summary.dataset;
  object["seed"] = summary.seed;
  object["status"] = summary.status;
  if (!summary.error.empty())
    object["error"] = summary.error;
  object["tasks"] = summary.tasks;
  object["rounds"] = summary.rounds;
  object["clients"] = summary.clients;
  object["client_rounds"] = summary.client_rounds;
  object["late_uploads"] = summary.late_uploads;
  object["dropped"] = summary.dropped;
  object["enrolled_max"] = summary.enrolled_max;
  add_metrics(object, summary.metrics);
  add_costs(object, summary);
  add_over_time(object, summary);
  add_population(object, summary);
  add_nodes(object, summary);
  if (!summary.arithmetic.empty())
    object["arithmetic"] = summary.arithmetic;
  for (const auto& [name, value] : summary.machine)
    object["machine"][name] = value;
  return dumped(object, 2) + "\n";
}

std::string json_text(const evaluation_record& evaluation) {
  json object;
  object["task"] = evaluation.task.value + 1;
  object["round"] = evaluation.round.value + 1;
  object["virtual_s"] = in_seconds(evaluation.at);
  object["accuracy"] = evaluation.accuracy;
  object["accuracy_per_task"] = evaluation.accuracy_per_task;
  object["loss"] = evaluation.loss;
  if (evaluation.perplexity)
    object["perplexity"] = *evaluation.perplexity;
  object["training_loss"] = or_null(evaluation.training_loss);
  object["training_loss_terms"] =
      evaluation.training_loss_terms.empty() ? json::object() : json(evaluation.training_loss_terms);
  object["upload_bytes"] = evaluation.upload_bytes;
  object["download_bytes"] = evaluation.download_bytes;
  object["clients_enrolled"] = evaluation.clients_enrolled;
  object["client_rounds"] = evaluation.client_rounds;
  object["late_uploads"] = evaluation.late_uploads;
  object["dropped"] = evaluation.dropped;
  object["forgetting"] = or_null(evaluation.forgetting);
  add_personal(object, evaluation.personal);
  if (evaluation.epsilon)
    object["epsilon"] = *evaluation.epsilon;
  return dumped(object, -1);
}

} // namespace mneme
