/// run_directory: the files that a run writes; see docs/runs.md.
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
struct task_stream;

/// Work and traffic of a node. Wall-clock times and bytes differ between equal runs.
struct node_record {
  std::string address{}, name{};
  std::int64_t workers = 0, client_rounds = 0;
  double busy_seconds = 0.0;                        ///< Sum over the node's workers.
  std::uint64_t bytes_sent = 0, bytes_received = 0; ///< Bytes sent to the node, and received from it.
  std::uint64_t bytes_waiting = 0;                  ///< Bytes that are queued for the node now.
  std::int64_t disconnects = 0;                     ///< Number of times that the node was lost.
  std::int64_t rounds_rerun = 0;                    ///< Number of rounds that this node began and another host reran.
  double disconnected_seconds = 0.0;                ///< Total time during which the node was lost.
  std::string rejection_reason{};                   ///< Reason why the node was rejected; empty if it was not.
  bool is_connected = true;                         ///< True if the node is connected.
};

/// Version of the arithmetic that run digests depend on. Runs of different epochs have different digests, even for
/// equal scenarios. Epoch 1: versions without the entry in summary.json. Epoch 2: autograd losses, functional layers,
/// oneDNN convolutions.
inline constexpr std::int64_t digest_epoch = 2;

/// Content of summary.json. `status` is "done", "failed" or "interrupted".
struct run_summary {
  std::string scenario{}, scenario_digest{}, run_digest{}, strategy{}, dataset{}, status{};
  std::string error{}; ///< Reason of a failure, else empty.
  std::int64_t seed = 0, tasks = 0, rounds = 0, clients = 0, client_rounds = 0, late_uploads = 0, dropped = 0,
               enrolled_max = 0;
  std::int64_t joined = 0, left = 0, task_transitions = 0; ///< Counts of clients joining, leaving and changing task.
  std::optional<double> staleness_mean{}; ///< Mean staleness of delivered uploads, in server steps; asynchronous runs
                                          ///< only.
  std::optional<std::int64_t> staleness_max{};
  continual_metrics metrics{};
  std::vector<reached_target> time_to_accuracy{};               ///< One element per target, in the scenario's order.
  std::optional<std::vector<double>> client_accuracy_deciles{}; ///< The nine deciles in percent.
  std::optional<personal_accuracies> personal{};                ///< Result of the last evaluation, with
                                                                ///< evaluation.personal.
  std::int64_t upload_bytes = 0, download_bytes = 0;
  double virtual_seconds = 0.0, wall_seconds = 0.0, cpu_seconds = 0.0, client_rounds_per_second = 0.0;
  double fused_width_mean = 0.0, worker_busy_share = 0.0;
  std::int64_t peak_rss_bytes = 0;
  std::string device{};
  std::map<std::string, double> figures{};                    ///< Metrics of the method by key.
  bool server_trains_on_rows = false;                         ///< True if the server trained on training rows.
  std::optional<std::string> trace_digest{};                  ///< Set only with --trace.
  std::vector<node_record> nodes{};                           ///< Empty without nodes.
  std::string arithmetic{};                                   ///< "machine" or "portable".
  std::vector<std::pair<std::string, std::string>> machine{}; ///< Properties of machine and libraries, by name.
  std::string folder{};                                       ///< The run directory; not saved.
  std::string resume_from{}; ///< The run directory, if the run can be resumed; not saved.
};
/// Text of summary.json: an indented object with a final line break. Undefined metrics are null; an empty `error` or
/// `trace_digest` is omitted.
[[nodiscard]] std::string json_text(const run_summary& summary);
/// A line of metrics.jsonl, without line break. Tasks and rounds count from 1.
[[nodiscard]] std::string json_text(const evaluation_record& evaluation);

/// Information about a run that its resolved scenario does not contain.
struct run_origin {
  std::string scenario{};        ///< The scenario's name.
  std::string scenario_digest{}; ///< Identifies a run that has no summary.
  std::string data_digest{};     ///< Digest of the data set's content; "" for runs of earlier versions.
  bool trace = false;
  std::map<std::string, std::string> files{};      ///< Digests of files, by the key that names the file.
  std::map<std::string, std::string> data_files{}; ///< Size and time of the files of a public data set, by path.
};

[[nodiscard]] std::string json_text(const run_origin& origin);
/// Reads an origin file (run.json). Fails if it is missing or damaged.
[[nodiscard]] expected<run_origin> parse_origin(const std::filesystem::path& file);
/// The `status` in a summary.json. Returns "" if the file does not exist. Fails if it is unreadable or has no status.
[[nodiscard]] expected<std::string> status_in(const std::filesystem::path& file);

/// A line of events.csv.
struct event_record {
  virtual_time at{};
  const char* actor = "";
  const char* event = "";
  std::optional<client_id> client{};
  task_id task{};
  round_id round{};
  std::int64_t bytes = 0;
};

/// A line of digests.csv: the state of a run after a server step.
struct step_digests {
  virtual_time at{};
  std::int64_t round = 0;      ///< Number of closed rounds, including this one.
  std::int64_t deliveries = 0; ///< Number of folded uploads so far.
  digest128 model{};           ///< Digest of all trained tensors.
  digest128 run{};             ///< The run digest so far.
};

/// A line of deliveries.csv: one tensor of an upload as a party received it.
struct tensor_digest {
  virtual_time at{};
  std::int64_t round = 0; ///< The open round, from 1.
  const char* party = "";
  client_id client{};
  std::string tensor{};
  digest128 digest{};
};

/// Lengths in bytes of the files that grow by lines.
struct line_lengths {
  std::uint64_t events = 0, digests = 0, deliveries = 0, clients = 0;
};

/// Draws accuracy.svg. @param title title of the run @param evaluations all evaluations, in order
using accuracy_drawing =
    std::function<std::string(const std::string& title, std::span<const evaluation_record> evaluations)>;

/// Owns the folder and its open files. A failed write throws std::system_error with the file name. After a failure the
/// existing files are complete: whole files are written under a temporary name and then renamed, and lines are flushed.
class run_directory {
public:
  /// True if the folder contains only files of a run that was killed before it wrote scenario.toml. False for an empty
  /// folder, which may belong to another program.
  [[nodiscard]] static bool never_started(const std::filesystem::path& folder);
  /// Creates `out`. If `out` is empty, creates runs/<scenario>-<strategy>-s<seed>-<digest8>, with -2, -3, ... appended
  /// if that folder exists. Fails if `out` exists, unless never_started() is true for it. Folders are created
  /// atomically and locked while open, so no two runs share one.
  [[nodiscard]] static expected<run_directory> create(const std::filesystem::path& out,
                                                      const std::string& default_name);
  /// Opens the folder of an existing run. Fails while another process has it open.
  [[nodiscard]] static expected<run_directory> open(const std::filesystem::path& path);
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// Current path of the folder, which the user may have moved. Empty if the folder or a file for resuming is missing.
  [[nodiscard]] std::filesystem::path resumable_at() const;
  [[nodiscard]] std::filesystem::path checkpoints() const { return path_ / "checkpoint"; }

  /// Path, relative to the folder, of the model after a task.
  [[nodiscard]] static std::string model_file(task_id task);

  /// Path, relative to the folder, of the dumped tensors of a round. @param round from 1
  [[nodiscard]] static std::string values_file(std::int64_t round);

  /// Saves information that scenario.toml does not contain.
  void write_origin(const run_origin& from);
  /// The information saved by write_origin(). Fails if it is missing or damaged.
  [[nodiscard]] expected<run_origin> origin() const;
  /// Status in summary.json: "done", "failed" or "interrupted"; empty without a summary. Fails if the file is damaged.
  [[nodiscard]] expected<std::string> status() const;
  /// Syncs events.csv, digests.csv, deliveries.csv and client_accuracy.csv to disk and returns their lengths.
  [[nodiscard]] line_lengths sync_lines();
  /// Name of the first file that is shorter than in `lengths`. Returns "" if none is.
  [[nodiscard]] std::string file_shorter_than(const line_lengths& lengths) const;
  /// Removes everything that was written after the given state of the run.
  /// @param names class names by label; empty if unknown
  void truncate_to_checkpoint(std::span<const evaluation_record> evaluations, const accuracy_matrix& matrix,
                              std::int64_t tasks, const std::vector<std::string>& names, const line_lengths& lengths);

  void write(const std::string& name, std::string_view content); ///< Writes a whole file atomically.
  void add(const evaluation_record& line);                       ///< Appends to metrics.jsonl.
  void add(std::span<const event_record> lines);   ///< Appends to events.csv, which the first call creates.
  void add(std::span<const step_digests> lines);   ///< Appends to digests.csv, which the first call creates.
  void add(std::span<const tensor_digest> lines);  ///< Appends to deliveries.csv, which the first call creates.
  void add_clients(const evaluation_record& line); ///< Appends line.clients to client_accuracy.csv.
  /// Writes accuracy_matrix.csv atomically, with `tasks` columns and all rows so far.
  void write_matrix(const accuracy_matrix& matrix, std::int64_t tasks);
  /// Writes accuracy_per_class.csv atomically, with each class at the end of each task so far. Writes no file if no
  /// class was counted. @param names class names by label; empty if unknown
  void write_classes(std::span<const evaluation_record> evaluations, const std::vector<std::string>& names);
  /// Writes partition.csv atomically, sorted by task, client and row. Rows are numbered as in the original training
  /// file, whatever the task's transform.
  void write_partition(const partition& who, std::int64_t clients, std::int64_t tasks, const dataset& train);

  /// Writes client_classes.csv atomically: the number of training rows of each client, by task and class.
  void write_client_classes(const partition& who, std::int64_t clients, const task_stream& tasks);

private:
  run_directory(std::filesystem::path path, open_file lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  /// Throws an error with the current path if the folder was moved or removed, or if a file for resuming is missing.
  void expect_in_place() const;
  template <class Line>
  void add_lines(std::optional<line_file>& file, const char* name, const char* header, std::span<const Line> lines);
  std::filesystem::path path_;
  bool has_begun_ = false; ///< True once scenario.toml exists.
  open_file lock_;         ///< Descriptor of the locked folder.
  std::optional<line_file> metrics_{}, events_{}, digests_{}, deliveries_{},
      clients_{}; ///< Opened when their first lines are added.
};

} // namespace mneme
