/// method_needs: what a method needs of the engine, as one value.
#pragma once
#include "runtime/data/partition.hpp"
#include "runtime/models/model.hpp"
#include <filesystem>
#include <map>
namespace mneme {

/// Which training rows a client's context shows.
enum class rows_shown : std::uint8_t {
  current,     ///< Those of its current task.
  cumulative,  ///< Those of all tasks so far in which it was enrolled (`joint`).
  centralised, ///< All clients' rows, cumulative, shown to client 0 alone, which is the whole cohort.
  offline,     ///< The same, but those of all tasks of the run from the first one on.
};

/// A module from outside that a method reads, from a TorchScript file or an AOTInductor package.
struct module_request {
  std::filesystem::path file{};
  std::array<std::int64_t, 3> input{}; ///< Channels, height and width of a row that it takes; zeros: those of the data.
  bool own_rows = false;               ///< It says itself which rows it takes, and how many of them in a call.
};

/// The defaults are what federated averaging of a net with a linear head needs; the
/// engine knows no other way to find out.
struct method_needs {
  /// The head that nets are built with.
  head_kind head = head_kind::linear;
  /// Directions of a class: head_kind::proxies.
  std::int64_t proxies = 10;
  /// Nets that can end without a ReLU before the head do so, unless their key says otherwise (model.last_relu).
  bool signed_features = false;
  /// Rows of the head behind those of the classes: numbers made of the features, which the method's losses read.
  std::int64_t further_outputs = 0;
  /// Nets with a token per task tell, in the map "divergence", a task's classes apart and from all older ones.
  bool divergence = false;
  /// What attention reads besides an image's own tokens; nets without attention are refused by the method.
  prompt_shape prompts{};
  rows_shown rows = rows_shown::current;
  /// The server step needs the uploads of one broadcast, all of them at hand: then the method is refused where the
  /// server steps as uploads come.
  bool round_barrier = false;
  /// A client's round is one job, behind which it uploads as many bytes as the broadcast's weights have: then virtual
  /// time needs no client's result before its upload arrives, and uploads are folded while others are computed.
  bool upload_size_known = false;
  /// The method has a third party, made by strategy::make_proxy().
  bool has_proxy = false;
  /// A client's half is not told which task it is in (round_place), unless strategy.oracle says so.
  bool blind_clients = false;
  /// The server trains on training rows, which the report says: no federation then.
  bool central_data = false;
  /// The column of partition.file that tells a client's rows apart (`sample_view::marks`).
  row_mark_column row_marks{};
  /// safetensors files that keys of the method name, by key; they are read before check().
  std::map<std::string, std::filesystem::path> tensor_files{};
  /// Files of modules that keys of the method name, by key; they are loaded and tried before check().
  std::map<std::string, module_request> module_files{};
  /// Texts that keys of the method name, by key; they are read before check().
  std::map<std::string, std::filesystem::path> text_files{};
  /// Features of frozen nets are kept here between runs; empty: nowhere.
  std::filesystem::path feature_folder{};
  /// The run's net is never trained: the method learns what stands behind it.
  bool frozen_net = false;
  /// The method decides itself which clients rest on what they remember: tasks.staying_share is told to it, and every
  /// client enters every task.
  bool own_groups = false;
  /// Defaults in any section in place of the usual ones, as TOML; every preset lies above them. They may follow from
  /// keys that are words: only those have been read when the engine looks at them.
  std::string defaults{};
};

} // namespace mneme
