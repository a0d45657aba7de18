#include "runtime/results/run_directory.hpp"
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
using namespace mneme;
using json = nlohmann::ordered_json;

namespace {

std::vector<std::string> keys_of(const json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items())
    keys.push_back(key);
  return keys;
}

const std::vector<std::string> summary_keys{"mneme_version",
                                            "scenario",
                                            "scenario_digest",
                                            "run_digest",
                                            "digest_epoch",
                                            "strategy",
                                            "dataset",
                                            "seed",
                                            "status",
                                            "tasks",
                                            "rounds",
                                            "clients",
                                            "client_rounds",
                                            "late_uploads",
                                            "dropped",
                                            "enrolled_max",
                                            "average_incremental_accuracy",
                                            "average_accuracy_task_mean",
                                            "final_accuracy",
                                            "final_accuracy_task_mean",
                                            "forgetting",
                                            "forgetting_including_last",
                                            "forgetting_from_first",
                                            "backward_transfer",
                                            "upload_bytes",
                                            "download_bytes",
                                            "virtual_seconds",
                                            "wall_seconds",
                                            "cpu_seconds",
                                            "client_rounds_per_second",
                                            "fused_width_mean",
                                            "worker_busy_share",
                                            "peak_rss_bytes",
                                            "device",
                                            "time_to_accuracy",
                                            "client_accuracy_deciles",
                                            "joined",
                                            "left",
                                            "task_transitions",
                                            "staleness_mean",
                                            "staleness_max"};

} // namespace

TEST_CASE("summary.json has the documented keys in order") {
  const auto summary = json::parse(json_text(run_summary{.status = "done"}));
  CHECK(keys_of(summary) == summary_keys);
  CHECK(summary["mneme_version"] == MNEME_VERSION);
}

TEST_CASE("error and trace digest appear only if there is one") {
  const auto summary =
      json::parse(json_text(run_summary{.status = "failed", .error = "disk full", .trace_digest = "ff"}));
  auto keys = summary_keys;
  keys.insert(keys.begin() + 5, "trace_digest");
  keys.insert(keys.begin() + 10, "error");
  CHECK(keys_of(summary) == keys);
  CHECK(summary["error"] == "disk full");
  CHECK(summary["trace_digest"] == "ff");
}

TEST_CASE("a summary has numbers in full precision, and null for undefined ones") {
  const auto text = json_text(run_summary{.scenario = "quick",
                                          .seed = 9'007'199'254'740'993, // more than a double holds
                                          .metrics = {.final_accuracy = 100.0 / 3.0},
                                          .virtual_seconds = 0.1,
                                          .peak_rss_bytes = 123});
  const auto summary = json::parse(text);
  CHECK(summary["scenario"] == "quick");
  CHECK(summary["seed"].get<std::int64_t>() == 9'007'199'254'740'993);
  CHECK(summary["final_accuracy"].get<double>() == 100.0 / 3.0);
  CHECK(summary["forgetting"].is_null());
  CHECK(summary["peak_rss_bytes"] == 123);
  CHECK(text.find("\"virtual_seconds\": 0.1,") != std::string::npos);
  CHECK(text.back() == '\n');
}

TEST_CASE("targets that were not reached are null, under the shortest text of their number") {
  const auto summary = json::parse(json_text(run_summary{.staleness_mean = 1.5,
                                                         .staleness_max = 7,
                                                         .time_to_accuracy = {{80.0, 12.25}, {99.5, std::nullopt}},
                                                         .client_accuracy_deciles = std::vector<double>{1.0, 2.0}}));
  CHECK(summary["time_to_accuracy"] == json::parse(R"({"80": 12.25, "99.5": null})"));
  CHECK(summary["client_accuracy_deciles"] == json::parse("[1.0, 2.0]"));
  CHECK(summary["staleness_mean"] == 1.5);
  CHECK(summary["staleness_max"] == 7);
  const auto synchronous = json::parse(json_text(run_summary{}));
  CHECK(synchronous["time_to_accuracy"] == json::object());
  CHECK(synchronous["client_accuracy_deciles"].is_null());
  CHECK(synchronous["staleness_mean"].is_null());
}

TEST_CASE("an evaluation is one line that counts tasks and rounds from 1") {
  const auto text = json_text(evaluation_record{.task = {1},
                                                .round = {9},
                                                .at = virtual_time{std::chrono::nanoseconds(1'500'000'001)},
                                                .accuracy = 70.5,
                                                .accuracy_per_task = {60.0, 81.25},
                                                .rows_per_task = {100, 100},
                                                .loss = 0.25,
                                                .upload_bytes = 7,
                                                .download_bytes = 8,
                                                .clients_enrolled = 20,
                                                .client_rounds = 100,
                                                .late_uploads = 3,
                                                .dropped = 4,
                                                .end_of_task = true,
                                                .training_loss = 0.75,
                                                .training_loss_terms = {{"cross_entropy", 0.5}, {"proximal", 0.25}},
                                                .per_class = {{3, 1}}});
  CHECK(text == R"({"task":2,"round":10,"virtual_s":1.500000001,"accuracy":70.5,"accuracy_per_task":[60.0,81.25],)"
                R"("loss":0.25,"training_loss":0.75,"training_loss_terms":{"cross_entropy":0.5,"proximal":0.25},)"
                R"("upload_bytes":7,"download_bytes":8,"clients_enrolled":20,"client_rounds":100,)"
                R"("late_uploads":3,"dropped":4,"forgetting":null})");
}

TEST_CASE("the loss of a round without training is null and has no terms") {
  const auto line = json::parse(json_text(evaluation_record{}));
  CHECK(line["training_loss"].is_null());
  CHECK(line["training_loss_terms"] == json::object());
}

TEST_CASE("a loss that is not finite is null, and invalid UTF-8 does not break a summary") {
  CHECK(json::parse(json_text(evaluation_record{.loss = NAN}))["loss"].is_null());
  CHECK(json::parse(json_text(run_summary{.error = "bad \xff byte"}))["error"] == "bad \xef\xbf\xbd byte");
}
