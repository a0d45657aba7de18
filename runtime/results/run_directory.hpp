/// run_directory: the files that a run writes (docs/runs.md).
#pragma once
#include "runtime/base/atomic_file.hpp"
#include "runtime/base/diagnostic.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/results/metrics.hpp"
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
namespace mneme {

class partition;
struct dataset;

/// A node of a run and its work. Real times and bytes, which differ between runs.
struct node_record {
  std::string address{}, name{};
  std::int64_t workers = 0, client_rounds = 0;
  double busy_seconds = 0.0;                        ///< Sum over its workers.
  std::uint64_t bytes_sent = 0, bytes_received = 0; ///< Sent to the node, and received from it.
  std::uint64_t bytes_waiting = 0;                  ///< Bytes queued for it now.
  std::int64_t losses = 0;                          ///< Number of times it was lost.
  double away_seconds = 0.0;                        ///< Total time from each loss to its return.
  std::string wrong{};                              ///< Reason for its rejection; empty if it is accepted.
  bool is_there = true;                             ///< Connected now.
};

/// Version of the arithmetic that run digests depend on. Runs of different epochs have different digests even if their
/// scenarios are equal. Epoch 1: versions without the entry in summary.json. Epoch 2: losses by automatic
/// differentiation, layers as functions, convolutions by oneDNN.
inline constexpr std::int64_t digest_epoch = 2;

/// Contents of summary.json. `status`: "done", "failed" or "interrupted".
struct run_summary {
  std::string scenario{}, scenario_digest{}, run_digest{}, strategy{}, dataset{}, status{};
  std::string error{}; ///< Reason of a failure; else empty.
  std::int64_t seed = 0, tasks = 0, rounds = 0, clients = 0, client_rounds = 0, late_uploads = 0, dropped = 0,
               enrolled_max = 0;
  std::int64_t joined = 0, left = 0, task_transitions = 0; ///< Changes of clients at times of their own.
  std::optional<double> staleness_mean{};                  ///< Over delivered uploads, in server steps; async only.
  std::optional<std::int64_t> staleness_max{};
  continual_metrics metrics{};
  std::vector<reached_target> time_to_accuracy{};               ///< In the order of the scenario.
  std::optional<std::vector<double>> client_accuracy_deciles{}; ///< Nine, in percent.
  std::int64_t upload_bytes = 0, download_bytes = 0;
  double virtual_seconds = 0.0, wall_seconds = 0.0, cpu_seconds = 0.0, client_rounds_per_second = 0.0;
  double fused_width_mean = 0.0, worker_busy_share = 0.0;
  std::int64_t peak_rss_bytes = 0;
  std::string device{};
  std::map<std::string, double> figures{};                    ///< Metrics of the method, by key.
  bool central_data = false;                                  ///< The server trained on training rows.
  std::optional<std::string> trace_digest{};                  ///< Only with --trace.
  std::vector<node_record> nodes{};                           ///< Only for runs with nodes.
  std::string arithmetic{};                                   ///< "machine" or "portable"
  std::vector<std::pair<std::string, std::string>> machine{}; ///< Machine and libraries, by name.
  std::string folder{};                                       ///< The run directory; not in the file.
  std::string resume_from{}; ///< The run directory, if the run can be resumed; not in the file.
};
/// Text of summary.json: one indented object with a final line break. Undefined metrics are null; `error` and
/// `trace_digest` are omitted if empty.
[[nodiscard]] std::string json_text(const run_summary& summary);
/// Line of metrics.jsonl without its line break. Tasks and rounds count from 1.
[[nodiscard]] std::string json_text(const evaluation_record& evaluation);

/// Information on a run in its directory, in addition to the resolved scenario.
struct run_origin {
  std::string scenario{};        ///< Name of the scenario.
  std::string scenario_digest{}; ///< Identifies runs that have no summary.
  std::string data_digest{};     ///< The content of its data set; "" where an earlier version began the run.
  bool trace = false;
  std::map<std::string, std::string> files{};      ///< Digests of files, by the keys that name them.
  std::map<std::string, std::string> data_files{}; ///< Size and time of the files of a public data set, by path.
};

[[nodiscard]] std::string json_text(const run_origin& origin);
[[nodiscard]] expected<run_origin> parsed_origin(const std::filesystem::path& file);
/// `status` of a summary.json; "" if there is no such file. Fails if there is one that cannot be read or has no status.
[[nodiscard]] expected<std::string> status_in(const std::filesystem::path& file);

/// An event for events.csv.
struct event_record {
  virtual_time at{};
  const char* actor = "";
  const char* event = "";
  std::optional<client_id> client{};
  task_id task{};
  round_id round{};
  std::int64_t bytes = 0;
};

/// Line of digests.csv: state of a run after a server step.
struct step_digests {
  virtual_time at{};
  std::int64_t round = 0;      ///< Number of closed rounds, with this one.
  std::int64_t deliveries = 0; ///< Number of folded uploads.
  digest128 model{};           ///< Of everything that is trained.
  digest128 run{};             ///< The run digest so far.
};

/// Line of deliveries.csv: a tensor of an upload, as it arrived at a party.
struct tensor_digest {
  virtual_time at{};
  std::int64_t round = 0; ///< The open round, from 1.
  const char* party = "";
  client_id client{};
  std::string tensor{};
  digest128 digest{};
};

/// Lengths in bytes of the files to which lines are appended.
struct line_lengths {
  std::uint64_t events = 0, digests = 0, deliveries = 0;
};

/// Draws accuracy.svg from the title of the run and its evaluations in order.
using accuracy_drawing =
    std::function<std::string(const std::string& title, std::span<const evaluation_record> evaluations)>;

/// Owns the folder and its open files. A failure to write throws std::system_error with the file name; existing
/// contents stay complete (temporary name, then rename; lines are flushed).
class run_directory {
public:
  /// True for a folder that contains only files of a run that was killed before it wrote scenario.toml. False for an
  /// empty folder: it may belong to another program.
  [[nodiscard]] static bool never_began(const std::filesystem::path& folder);
  /// Creates `out` (an error if it exists), or runs/<scenario>-<strategy>-s<seed>-<digest8> with -2, -3, ... if taken.
  /// Given as `out`, a folder for which never_began() is true is reused. Folders are created atomically and locked
  /// while open, so no two runs or processes share one.
  [[nodiscard]] static expected<run_directory> create(const std::filesystem::path& out,
                                                      const std::string& default_name);
  /// Opens the folder of an existing run. Fails while another process writes into it.
  [[nodiscard]] static expected<run_directory> open(const std::filesystem::path& path);
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// Current path of the folder, which may have been moved. Empty if it was removed, or lacks files needed to resume.
  [[nodiscard]] std::filesystem::path resumable_at() const;
  [[nodiscard]] std::filesystem::path checkpoints() const { return path_ / "checkpoint"; }

  /// Path, below the folder, of the model at the end of a task.
  [[nodiscard]] static std::string model_file(task_id task);

  /// Path, below the folder, of the values of a round, counted from 1.
  [[nodiscard]] static std::string values_file(std::int64_t round);

  /// Records information that scenario.toml does not contain.
  void write_origin(const run_origin& from);
  [[nodiscard]] expected<run_origin> origin() const;
  /// "done", "failed" or "interrupted"; empty if there is no summary. Fails if summary.json is damaged.
  [[nodiscard]] expected<std::string> status() const;
  /// Flushes events.csv, digests.csv and deliveries.csv to disk and returns their lengths.
  [[nodiscard]] line_lengths settled_lines();
  /// Name of the first of the three files that is shorter; empty if none is.
  [[nodiscard]] std::string file_shorter_than(const line_lengths& lengths) const;
  /// Removes everything that was written after the given state.
  /// @param names of classes, by label
  void cut_back(std::span<const evaluation_record> evaluations, const accuracy_matrix& matrix, std::int64_t tasks,
                const std::vector<std::string>& names, const line_lengths& lengths);

  void write(const std::string& name, std::string_view content); ///< Writes a whole file atomically.
  void add(const evaluation_record& line);                       ///< metrics.jsonl
  void add(std::span<const event_record> lines);                 ///< events.csv, opened by the first call.
  void add(std::span<const step_digests> lines);                 ///< digests.csv, likewise
  void add(std::span<const tensor_digest> lines);                ///< deliveries.csv, likewise
  /// Writes accuracy_matrix.csv atomically, with `tasks` columns and the rows so far.
  void write_matrix(const accuracy_matrix& matrix, std::int64_t tasks);
  /// Writes accuracy_per_class.csv atomically: each class at the end of each task so far. No file if no class was
  /// counted.
  /// @param names by label; empty if unknown
  void write_classes(std::span<const evaluation_record> evaluations, const std::vector<std::string>& names);
  /// Writes partition.csv atomically, ordered by task, client and row. Rows are those of the original training file,
  /// for any transform of the task.
  void write_partition(const partition& who, std::int64_t clients, std::int64_t tasks, const dataset& train);

private:
  run_directory(std::filesystem::path path, open_file lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  /// Throws, with the current path, if the folder was moved or removed, or if a file is missing that is needed to
  /// resume.
  void expect_in_place() const;
  template <class Line>
  void add_lines(std::optional<line_file>& file, const char* name, const char* header, std::span<const Line> lines);
  std::filesystem::path path_;
  bool has_begun_ = false;                                                   ///< scenario.toml exists.
  open_file lock_;                                                           ///< The folder itself.
  std::optional<line_file> metrics_{}, events_{}, digests_{}, deliveries_{}; ///< Opened by their first line.
};

} // namespace mneme
