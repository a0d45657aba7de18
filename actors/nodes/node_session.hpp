/// node_session: state of a node for one run, and the files that runs have sent.
#pragma once
#include "actors/nodes/node_actors.hpp"
#include "runtime/transport/connection_loop.hpp"
#include <filesystem>
#include <optional>
namespace mneme {

/// Files that runs have sent, in a temporary folder of this process. Each file is named by the digest of its content.
/// The constructor removes the folders of killed nodes.
class node_files {
public:
  node_files();
  ~node_files();
  node_files(const node_files&) = delete;
  node_files& operator=(const node_files&) = delete;
  /// Path of a file; empty if no run has sent its content.
  [[nodiscard]] std::filesystem::path find(const offered_file& file) const;
  /// Saves a file. Throws archive_error if its digest is not the offered one.
  void put(const offered_file& file, const std::vector<std::byte>& bytes);
  /// Removes the folder. For processes that end without destroying this object.
  void remove() noexcept;
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

private:
  [[nodiscard]] std::filesystem::path path_of(const offered_file& file) const;
  std::filesystem::path folder_;
  owned_descriptor lock_; // held until the process ends
};

inline constexpr std::int64_t shards_of_nodes_max = 65'536; // the limit of worker.shards

/// State of a node for one run: the run's offer and the loaded context.
struct node_session {
  run_offer offer{};
  std::vector<std::string> missing{};     ///< Keys of requested files that have not arrived yet.
  std::shared_ptr<run_context> context{}; ///< Null until it is loaded.
  std::atomic<int> interrupts = 0;        ///< Above 0: end programs between two slices.

  /// Loads the offered run from the node's own data and the files that were sent. Fails with all errors. Takes long,
  /// modifies no member, and may run on any thread.
  /// @param native_code true: model.native_code is accepted
  /// @param local_rank selects a CUDA device; nullopt: the scenario's device
  [[nodiscard]] expected<std::shared_ptr<run_context>> load(const node_files& files, bool native_code,
                                                            std::optional<std::int64_t> local_rank = {}) const;
  /// Sets the layout of the loaded context. @param threads number of workers
  void lay_out(const node_layout& layout, std::int64_t threads);
};

/// Device for a process that is one of several on its machine. If the setting resolves to a CUDA device, returns the
/// one with index local_rank modulo the number of devices; otherwise the setting itself.
[[nodiscard]] std::string device_of_rank(const std::string& setting, std::int64_t local_rank);

} // namespace mneme
