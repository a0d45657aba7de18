/// run_folders: run directories with metrics chosen by a test.
#pragma once
#include "runtime/results/run_directory.hpp"
#include "tests/support/scratch.hpp"
#include <fmt/format.h>
namespace mneme::test {

/// Metrics of a run.
struct made_run {
  std::string strategy = "fedavg", scenario = "made";
  std::int64_t seed = 1;
  double learning_rate = 0.1;
  double final_accuracy = 50.0;
  std::optional<double> forgetting = 10.0;
  std::string status = "done";
  std::string digest = "00000000000000000000000000000000";
};

/// An evaluation at the end of a task: accuracy per task, total accuracy, and time.
inline evaluation_record evaluation_after(std::uint32_t task, std::vector<double> accuracies, double accuracy,
                                          std::int64_t seconds) {
  evaluation_record line{.task = task_id{task}, .round = round_id{2 * task + 1}};
  line.at = virtual_time(std::chrono::seconds(seconds));
  line.accuracy = accuracy;
  line.accuracy_per_task = std::move(accuracies);
  line.upload_bytes = 1'000 * (task + 1);
  line.download_bytes = 2'000 * (task + 1);
  return line;
}

/// Two tasks: 80 % on the first after 10 s, then `final_accuracy` on both after 30 s.
inline void write_run(const std::filesystem::path& folder, const made_run& run) {
  std::filesystem::create_directories(folder / "checkpoint");
  write_file(folder / "scenario.toml",
             fmt::format("title = \"Made\"\nseed = {}\n\n[data]\nname = \"mnist\"\n\n[rounds]\ncohort = 5\n\n"
                         "[training]\nlearning_rate = {}\n\n[strategy]\nname = \"{}\"\n",
                         run.seed, run.learning_rate, run.strategy));
  write_file(folder / "checkpoint" / "run.json",
             json_text(run_origin{.scenario = run.scenario, .scenario_digest = run.digest}));
  const auto last = evaluation_after(1, {run.final_accuracy - 5.0, run.final_accuracy + 5.0}, run.final_accuracy, 30);
  write_file(folder / "metrics.jsonl",
             json_text(evaluation_after(0, {80.0}, 80.0, 10)) + "\n" + json_text(last) + "\n");
  if (run.status == "unfinished")
    return;
  run_summary summary{.scenario = run.scenario,
                      .scenario_digest = run.digest,
                      .run_digest = "d",
                      .strategy = run.strategy,
                      .dataset = "mnist",
                      .status = run.status,
                      .seed = run.seed};
  summary.tasks = 2;
  summary.metrics.final_accuracy = run.final_accuracy;
  summary.metrics.forgetting = run.forgetting;
  summary.upload_bytes = 2'000;
  write_file(folder / "summary.json", json_text(summary));
}

} // namespace mneme::test
