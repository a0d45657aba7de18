/// method_needs: requirements that a method places on the engine.
#pragma once
#include "runtime/data/partition.hpp"
#include "runtime/models/model.hpp"
#include <filesystem>
#include <map>
namespace mneme {

/// Training rows that a client can access.
enum class row_visibility : std::uint8_t {
  current,     ///< Rows of the client's current task.
  cumulative,  ///< Rows of all tasks so far in which the client was enrolled (`joint`).
  centralized, ///< Client 0 has the rows of all clients and all tasks so far, and is the whole cohort.
  offline,     ///< Client 0 has the rows of all clients and all tasks from the start, and is the whole cohort.
};

/// A module file that a method loads: an exported program.
struct module_request {
  std::filesystem::path file{};
  std::array<std::int64_t, 3> input{}; ///< Channels, height and width of input rows; zeros: the shape of the data.
  bool own_rows = false;               ///< True: the file declares the shape and number of its input rows.
};

/// The defaults fit federated averaging of a net with a linear head. These values are all that the engine uses to
/// configure itself for a method.
struct method_needs {
  /// Kind of head that nets are built with.
  head_kind head = head_kind::linear;
  /// Number of proxies (directions) per class, for head_kind::proxies.
  std::int64_t proxies = 10;
  /// Omits the ReLU before the head in nets that support it, unless model.last_relu is set.
  bool signed_features = false;
  /// Number of head outputs that follow the outputs of the classes, for the method's losses.
  std::int64_t extra_outputs = 0;
  /// Prompt tokens that attention reads. The method must reject nets without attention.
  prompt_shape prompts{};
  row_visibility rows = row_visibility::current;
  /// The server step needs all uploads of one broadcast together. Asynchronous runs reject such a method.
  bool round_barrier = false;
  /// The method sets the number of rounds of a task (task_plan::rounds), so rounds.per_task is unused.
  bool own_rounds = false;
  /// A client's round is one job, and its upload has the size of the broadcast weights. Virtual time then needs no
  /// result before the upload arrives, and uploads are folded while other jobs run.
  bool upload_size_known = false;
  /// The method has a proxy as third party, created by strategy::make_proxy().
  bool has_proxy = false;
  /// Hides the task (round_info) from the client half, unless strategy.oracle is true.
  bool hide_task_from_clients = false;
  /// The server trains on training rows. The report then states that the run is not federated.
  bool server_trains_on_rows = false;
  /// Column of partition.file that marks rows of a client (`sample_view::marks`).
  partition_column_spec partition_column{};
  /// The safetensors files of the method, each under the key that names the file. They are read before check().
  std::map<std::string, std::filesystem::path> tensor_files{};
  /// The module files of the method, each under the key that names the file. They are loaded and probed before check().
  std::map<std::string, module_request> module_files{};
  /// The text files of the method, each under the key that names the file. They are read before check().
  std::map<std::string, std::filesystem::path> text_files{};
  /// Folder that caches features of frozen nets between runs; empty: no cache.
  std::filesystem::path feature_folder{};
  /// The run's net is never trained; the method trains another net on its features.
  bool frozen_net = false;
  /// The method chooses which clients keep their old task. It receives tasks.keep_task_share, and the engine moves
  /// every client to every task.
  bool assigns_old_task_clients = false;
  /// TOML with defaults for keys of any section; presets override them. The defaults may depend only on the method's
  /// keys whose values are words, because these are read first.
  std::string defaults{};
};

} // namespace mneme
