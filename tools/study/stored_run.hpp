/// stored_run: content of a run directory, for commands that read many runs.
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
  std::int64_t digest_epoch = 1; ///< See runtime/results/run_directory.hpp.
  std::string error{};           ///< Reason why the run failed; "" otherwise.
  std::string data_digest{};     ///< Digest of its data set; "" if its folder does not record it.
  std::int64_t seed = 0;
  /// Keys of the resolved scenario: names such as "rounds.cohort" with their values as TOML; strings without quotes.
  std::map<std::string, std::string> keys{};
  /// Properties of the machine that computed the run, by "processor", "LibTorch" and other names; empty if the summary
  /// has no such part.
  std::map<std::string, std::string> machine{};
  /// All numbers of summary.json; nullopt if a number is undefined.
  std::map<std::string, std::optional<double>> figures{};
};

/// True if the folder has a scenario.toml or summary.json of a run.
[[nodiscard]] bool is_run_folder(const std::filesystem::path& folder);
/// Returns the run directories at or below `folder`, at most three levels deep, sorted by path.
[[nodiscard]] std::vector<std::filesystem::path> run_folders_in(const std::filesystem::path& folder);

/// Reads a run directory. Fails with the file name if a file is missing, damaged or belongs to another run.
[[nodiscard]] expected<stored_run> read_stored_run(const std::filesystem::path& folder);
/// Entry for a folder on which read_stored_run() fails: status "damaged", and the digest of its scenario if readable.
[[nodiscard]] stored_run make_damaged_run(const std::filesystem::path& folder, const diagnostic& problem);
/// Reads metrics.jsonl. `end_of_task` is true for the last line of a task. Fails with file and line if a line is
/// damaged.
[[nodiscard]] expected<std::vector<evaluation_record>> read_evaluations(const std::filesystem::path& folder);

/// Reads timeline.jsonl. Computes `staleness_sum` from the mean in the file.
[[nodiscard]] expected<std::vector<timeline_bin>> read_timeline(const std::filesystem::path& folder);

/// Accuracy on a class after a task, in percent.
struct class_accuracy {
  task_id task{};
  std::int64_t label = 0;
  std::string name{}; ///< "" where the data set has none.
  double accuracy = 0.0;
};
/// Reads accuracy_per_class.csv; empty if the run has no such file.
[[nodiscard]] expected<std::vector<class_accuracy>> read_class_accuracies(const std::filesystem::path& folder);

/// Number of training rows of a class that a client holds, in all tasks.
struct client_class_rows {
  std::uint32_t client = 0;
  std::int64_t label = 0;
  std::string name{}; ///< "" where the data set has none.
  std::int64_t rows = 0;
};
/// Reads client_classes.csv; empty if the run has no such file.
[[nodiscard]] expected<std::vector<client_class_rows>> read_client_classes(const std::filesystem::path& folder);

/// Value of `name`: "scenario", "strategy", "dataset", "version", "status", "device", "seed", or a scenario key.
/// Returns null if the run has no such name.
[[nodiscard]] const std::string* run_value(const stored_run& run, const std::string& name);

} // namespace mneme
