/// method_needs: what a method requires of the engine.
#pragma once
#include "runtime/data/partition.hpp"
#include "runtime/models/model.hpp"
#include <filesystem>
#include <map>
namespace mneme {

/// Training rows that are visible to a client.
enum class rows_shown : std::uint8_t {
  current,     ///< Rows of its current task.
  cumulative,  ///< Rows of all tasks so far in which it was enrolled (`joint`).
  centralised, ///< All clients' rows, cumulative, visible to client 0, which is the whole cohort.
  offline,     ///< Likewise, with the rows of all tasks from the first task on.
};

/// A module that a method loads from an exported program or a TorchScript file.
struct module_request {
  std::filesystem::path file{};
  std::array<std::int64_t, 3> input{}; ///< Channels, height and width of its input rows; zeros: those of the data.
  bool own_rows = false;               ///< The file states the shape and number of its input rows.
};

/// Defaults suit federated averaging of a net with a linear head. The engine learns about a method only from these
/// values.
struct method_needs {
  /// Head with which nets are built.
  head_kind head = head_kind::linear;
  /// Directions per class, for head_kind::proxies.
  std::int64_t proxies = 10;
  /// Omits the ReLU before the head in nets that can do so, unless model.last_relu says otherwise.
  bool signed_features = false;
  /// Extra rows of the head after those of the classes, for the method's losses.
  std::int64_t further_outputs = 0;
  /// Extra tokens that attention reads. The method must refuse nets without attention.
  prompt_shape prompts{};
  rows_shown rows = rows_shown::current;
  /// The server step needs all uploads of one broadcast together. Such a method is refused in asynchronous runs.
  bool round_barrier = false;
  /// The method sets the number of rounds of a task (task_plan::rounds): rounds.per_task is not read.
  bool own_rounds = false;
  /// A client's round is one job, and its upload has the size of the broadcast weights. Virtual time then needs no
  /// result before the upload arrives, and uploads are folded while others are computed.
  bool upload_size_known = false;
  /// The method has a third party, created by strategy::make_proxy().
  bool has_proxy = false;
  /// Hides the task from the client half (round_place), unless strategy.oracle is true.
  bool blind_clients = false;
  /// The server trains on training rows, so the run is no federation; the report says so.
  bool central_data = false;
  /// Column of partition.file that distinguishes rows of a client (`sample_view::marks`).
  row_mark_column row_marks{};
  /// safetensors files named by keys of the method, by key. They are read before check().
  std::map<std::string, std::filesystem::path> tensor_files{};
  /// Module files named by keys of the method, by key. They are loaded and probed before check().
  std::map<std::string, module_request> module_files{};
  /// Text files named by keys of the method, by key. They are read before check().
  std::map<std::string, std::filesystem::path> text_files{};
  /// Folder that caches features of frozen nets between runs; empty: no cache.
  std::filesystem::path feature_folder{};
  /// The run's net is never trained; the method trains a net after it.
  bool frozen_net = false;
  /// The method itself decides which clients keep their old task: it receives tasks.staying_share, and every client
  /// enters every task.
  bool own_groups = false;
  /// Defaults of any section, as TOML; presets override them. They may depend only on the method's word keys, which are
  /// read first.
  std::string defaults{};
};

} // namespace mneme
