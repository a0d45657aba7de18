/// run_directory: the files a run leaves behind (design, section 6).
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

/// One node of a run, and what it did for it. Real times and bytes: no two runs have the same.
struct node_record {
  std::string address{}, name{};
  std::int64_t workers = 0, client_rounds = 0;
  double busy_seconds = 0.0;                        ///< Summed over its workers.
  std::uint64_t bytes_sent = 0, bytes_received = 0; ///< By the run, to the node and from it.
  std::uint64_t bytes_waiting = 0;                  ///< Now, for the network on the way to it.
  std::int64_t losses = 0;                          ///< How often it was lost,
  double away_seconds = 0.0;                        ///< and for how long until it was back.
  std::string wrong{};                              ///< Why its answers are not taken any more; empty: they are.
  bool is_there = true;                             ///< Now.
};

/// Everything summary.json says. `status`: "done", "failed", "interrupted".
struct run_summary {
  std::string scenario{}, scenario_digest{}, run_digest{}, strategy{}, dataset{}, status{};
  std::string error{}; ///< Why a run failed; empty otherwise.
  std::int64_t seed = 0, tasks = 0, rounds = 0, clients = 0, client_rounds = 0, late_uploads = 0, dropped = 0,
               enrolled_max = 0;
  std::int64_t joined = 0, left = 0, task_transitions = 0; ///< These count clients' own changes, apart from rounds.
  std::optional<double> staleness_mean{};                  ///< Mean over delivered uploads, in server steps; async.
  std::optional<std::int64_t> staleness_max{};
  continual_metrics metrics{};
  std::vector<reached_target> time_to_accuracy{};               ///< In the scenario's order.
  std::optional<std::vector<double>> client_accuracy_deciles{}; ///< Nine, in percent.
  std::int64_t upload_bytes = 0, download_bytes = 0;
  double virtual_seconds = 0.0, wall_seconds = 0.0, cpu_seconds = 0.0, client_rounds_per_second = 0.0;
  double fused_width_mean = 0.0, worker_busy_share = 0.0;
  std::int64_t peak_rss_bytes = 0;
  std::string device{};
  std::map<std::string, double> figures{};                    ///< The method's own, by key.
  bool central_data = false;                                  ///< The server trained on training rows.
  std::optional<std::string> trace_digest{};                  ///< With --trace only.
  std::vector<node_record> nodes{};                           ///< Where it was run with nodes.
  std::string arithmetic{};                                   ///< "machine" or "portable"
  std::vector<std::pair<std::string, std::string>> machine{}; ///< What it was computed on and with, by name.
  std::string folder{};                                       ///< The run directory; not in the file.
  std::string resume_from{}; ///< The run directory, where an unfinished run can go on; not in the file.
};
/// The text of summary.json: one object, indented, with a final line break; undefined metrics are
/// null, `error` and `trace_digest` appear only where there is one.
[[nodiscard]] std::string json_text(const run_summary& summary);
/// The line of metrics.jsonl, without its line break. Tasks and rounds from 1.
[[nodiscard]] std::string json_text(const evaluation_record& evaluation);

/// What a run directory says of its run besides the resolved scenario.
struct run_origin {
  std::string scenario{};        ///< Its name.
  std::string scenario_digest{}; ///< With it, runs that never ended are told apart.
  std::string data_digest{};     ///< The content of its data set; "" where an earlier version began the run.
  bool trace = false;
};

[[nodiscard]] std::string json_text(const run_origin& origin);
[[nodiscard]] expected<run_origin> parsed_origin(const std::filesystem::path& file);
/// `status` of a summary.json; "" if the file does not say.
[[nodiscard]] std::string status_in(const std::filesystem::path& file);

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

/// A line of digests.csv: what a run had come to when the server had stepped.
struct step_digests {
  virtual_time at{};
  std::int64_t round = 0;      ///< Rounds closed so far, this one among them.
  std::int64_t deliveries = 0; ///< Uploads that the server has taken in so far.
  digest128 model{};           ///< Digest of all that is learnt.
  digest128 run{};             ///< The run digest so far.
};

/// A line of deliveries.csv: a tensor of an upload, as it reached a party.
struct tensor_digest {
  virtual_time at{};
  std::int64_t round = 0; ///< The open one, counted from 1.
  const char* party = "";
  client_id client{};
  std::string tensor{};
  digest128 digest{};
};

/// Lengths in bytes of the files that grow by lines.
struct line_lengths {
  std::uint64_t events = 0, digests = 0, deliveries = 0;
};

/// Draws accuracy.svg, from the title of the run and its evaluations in the order of their rounds.
using accuracy_drawing =
    std::function<std::string(const std::string& title, std::span<const evaluation_record> evaluations)>;

/// Owns the folder and its open files. What cannot be written throws std::system_error naming the
/// file; everything written before stays whole (temporary name, then rename; lines are flushed).
class run_directory {
public:
  /// True if there is a folder which holds nothing but the files of a run that was killed before its scenario.toml was
  /// written. An empty folder does not count: it may belong to another program.
  [[nodiscard]] static bool never_began(const std::filesystem::path& folder);
  /// `out` if given (an error if it exists), else runs/<scenario>-<strategy>-s<seed>-<digest8>, with
  /// -2, -3, ... if taken. As `out`, a folder whose run was killed before it began is taken over. Two runs never share
  /// a folder (created atomically), nor two processes (locked while open).
  [[nodiscard]] static expected<run_directory> create(const std::filesystem::path& out,
                                                      const std::string& default_name);
  /// The folder of a run that began earlier; fails while another process writes into it.
  [[nodiscard]] static expected<run_directory> open(const std::filesystem::path& path);
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// Where the folder is now, which others may have moved; "" if it has been removed, or lacks what a run begins with.
  [[nodiscard]] std::filesystem::path resumable_at() const;
  [[nodiscard]] std::filesystem::path checkpoints() const { return path_ / "checkpoint"; }

  /// Where the model at the end of a task is kept, below the folder.
  [[nodiscard]] static std::string model_file(task_id task);

  /// Where the values of a round are kept, counted from 1, below the folder.
  [[nodiscard]] static std::string values_file(std::int64_t round);

  /// Notes, for whoever opens the folder later, what scenario.toml does not say.
  void write_origin(const run_origin& from);
  [[nodiscard]] expected<run_origin> origin() const;
  /// "done", "failed", "interrupted", or "" where no summary says so.
  [[nodiscard]] std::string status() const;
  /// Lengths of events.csv, digests.csv and deliveries.csv, all of which are on the disk when it returns.
  [[nodiscard]] line_lengths settled_lines();
  /// The first of the three files that is shorter; "" if none is.
  [[nodiscard]] std::string file_shorter_than(const line_lengths& lengths) const;
  /// Takes away what was written after the state that is given, so that the run goes on as if it had not been.
  /// @param names of classes, by label
  void cut_back(std::span<const evaluation_record> evaluations, const accuracy_matrix& matrix, std::int64_t tasks,
                const std::vector<std::string>& names, const line_lengths& lengths);

  void write(const std::string& name, std::string_view content); ///< Whole file, atomically.
  void add(const evaluation_record& line);                       ///< metrics.jsonl
  void add(std::span<const event_record> lines);                 ///< events.csv, opened at the first call.
  void add(std::span<const step_digests> lines);                 ///< digests.csv, the same
  void add(std::span<const tensor_digest> lines);                ///< deliveries.csv, the same
  /// accuracy_matrix.csv with all `tasks` columns and the rows so far, atomically.
  void write_matrix(const accuracy_matrix& matrix, std::int64_t tasks);
  /// accuracy_per_class.csv: each class at the end of each task so far, atomically; nothing where none was counted.
  /// @param names by label; empty: none are known
  void write_classes(std::span<const evaluation_record> evaluations, const std::vector<std::string>& names);
  /// partition.csv by task, client and row, atomically. Rows are rows of the original training file,
  /// whatever the task's transform.
  void write_partition(const partition& who, std::int64_t clients, std::int64_t tasks, const dataset& train);

private:
  run_directory(std::filesystem::path path, open_file lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  /// Throws, saying where the folder is now, if it has been moved or removed: what is written would lie elsewhere. The
  /// same where a file is gone without which nobody can go on with the run.
  void expect_in_place() const;
  template <class Line>
  void add_lines(std::optional<line_file>& file, const char* name, const char* header, std::span<const Line> lines);
  std::filesystem::path path_;
  bool has_begun_ = false; ///< scenario.toml is written, or was there.
  open_file lock_;         ///< The folder itself.
  std::optional<line_file> metrics_{}, events_{}, digests_{}, deliveries_{}; ///< Opened by their first line.
};

} // namespace mneme
