/// stored_run: what a run directory says of its run, for those who look at many.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/results/metrics.hpp"
#include "runtime/results/timeline.hpp"
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
namespace mneme {

struct stored_run {
  std::filesystem::path folder{};
  std::string status{}; ///< "done", "failed", "interrupted"; "unfinished" while there is no summary.
  std::string version{}, scenario{}, scenario_digest{}, run_digest{}, strategy{}, dataset{}, device{};
  std::string error{};       ///< Why it failed; "" otherwise.
  std::string data_digest{}; ///< The content of its data set; "" where its folder does not say.
  std::int64_t seed = 0;
  /// The resolved scenario: "rounds.cohort" and its value as TOML, words without their quotes.
  std::map<std::string, std::string> keys{};
  /// "processor", "LibTorch", ... and what they were where it was computed; empty where the summary does not say.
  std::map<std::string, std::string> machine{};
  /// Every number of summary.json; null where it is undefined.
  std::map<std::string, std::optional<double>> figures{};
};

/// True where a run began, or left its summary.
[[nodiscard]] bool is_run_folder(const std::filesystem::path& folder);
/// The run folders at or below `folder`, at most three levels deep, by path.
[[nodiscard]] std::vector<std::filesystem::path> run_folders_in(const std::filesystem::path& folder);

/// Fails, naming the file, where a file is missing or damaged or does not belong to the others.
[[nodiscard]] expected<stored_run> read_stored_run(const std::filesystem::path& folder);
/// The lines of metrics.jsonl; the file and its line are named where one is damaged. `end_of_task` holds for the last
/// line of each task.
[[nodiscard]] expected<std::vector<evaluation_record>> read_evaluations(const std::filesystem::path& folder);

/// The lines of timeline.jsonl; `staleness_sum` is that of the mean.
[[nodiscard]] expected<std::vector<timeline_bin>> read_timeline(const std::filesystem::path& folder);

/// The accuracy on a class just after a task, in percent.
struct class_accuracy {
  task_id task{};
  std::int64_t label = 0;
  std::string name{}; ///< "" where the data set has none.
  double accuracy = 0.0;
};
/// The lines of accuracy_per_class.csv; none where the run has no such file.
[[nodiscard]] expected<std::vector<class_accuracy>> read_class_accuracies(const std::filesystem::path& folder);

/// The value of `name`: "scenario", "strategy", "dataset", "version", "status", "device", "seed", or a scenario key;
/// null if the run has none of that name.
[[nodiscard]] const std::string* said_by(const stored_run& run, const std::string& name);

} // namespace mneme
