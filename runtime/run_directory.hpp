/// run_directory: the files a run leaves behind (design, section 6).
#pragma once
#include "runtime/metrics.hpp"
#include "runtime/models/model.hpp"
#include "runtime/tensor_map.hpp"
#include <filesystem>
#include <fstream>
#include <memory>
namespace mneme {

/// Everything summary.json says. `status`: "done", "failed", "interrupted".
struct run_summary {
  std::string scenario{}, scenario_digest{}, run_digest{}, strategy{}, dataset{}, status{};
  std::string error{}; ///< Why a run failed; empty otherwise.
  std::int64_t seed = 0, tasks = 0, rounds = 0, clients = 0, client_rounds = 0, late_uploads = 0, dropped = 0, enrolled_max = 0;
  continual_metrics metrics{};
  std::int64_t upload_bytes = 0, download_bytes = 0;
  double virtual_seconds = 0.0, wall_seconds = 0.0, cpu_seconds = 0.0, client_rounds_per_second = 0.0;
  double fused_width_mean = 0.0, worker_busy_share = 0.0;
  std::int64_t peak_rss_bytes = 0;
  std::string device{};
  std::optional<std::string> trace_digest{}; ///< With --trace only.
};
/// The JSON object of summary.json; undefined metrics are null.
[[nodiscard]] std::string json_text(const run_summary& what);
/// The line of metrics.jsonl, without its line break. Tasks and rounds from 1.
[[nodiscard]] std::string json_text(const evaluation_record& what);

/// A named tensor file as defined by safetensors: names in order, 8-byte aligned, no metadata.
[[nodiscard]] std::vector<std::byte> safetensors_bytes(const tensor_map& tensors);
/// Reads one back; sizes are checked before memory is taken. Dtypes F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL.
[[nodiscard]] expected<tensor_map> read_safetensors(const std::filesystem::path& file);
/// The flat weights of a net as named parameters, and back. The way back fails on any missing,
/// extra or misshapen tensor, naming it; with `head_optional` the head may be absent.
[[nodiscard]] tensor_map named_parameters(const model& net, const at::Tensor& flat);
[[nodiscard]] expected<at::Tensor> flat_parameters(const model& net, const tensor_map& named, const std::string& file,
                                                   const at::Tensor* head_from);

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

/// Owns the folder and its open files. What cannot be written throws std::system_error naming the
/// file; everything written before stays whole (temporary name, then rename; lines are flushed).
class run_directory {
public:
  /// `out` if given (an error if it exists), else runs/<scenario>-<strategy>-s<seed>-<digest8>, with
  /// -2, -3, ... if taken. Two runs never share a folder (created atomically).
  [[nodiscard]] static expected<run_directory> create(const std::filesystem::path& out, const std::string& default_name);
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  void write(const std::string& name, std::string_view content); ///< Whole file, atomically.
  void add(const evaluation_record& line);                       ///< metrics.jsonl; matrix rows too.
  void add(std::span<const event_record> lines);                 ///< events.csv, opened at the first call.
  /// accuracy_matrix.csv with all `tasks` columns and the rows so far, atomically.
  void write_matrix(const accuracy_matrix& matrix, std::int64_t tasks);

private:
  explicit run_directory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
  std::ofstream metrics_, events_;
};

} // namespace mneme
