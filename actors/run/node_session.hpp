/// node_session: state of a node for one run, and the files that runs have sent.
#pragma once
#include "actors/run/node_actors.hpp"
#include "runtime/transport/connection_loop.hpp"
#include <filesystem>
#include <optional>
namespace mneme {

/// Files that runs have sent, by content, in a temporary folder of this process. The constructor removes folders of
/// nodes that were killed.
class node_files {
public:
  node_files();
  ~node_files();
  node_files(const node_files&) = delete;
  node_files& operator=(const node_files&) = delete;
  /// Path of the file; empty if no run has sent it.
  [[nodiscard]] std::filesystem::path find(const offered_file& file) const;
  /// Throws archive_error unless the bytes have the digest that was offered.
  void put(const offered_file& file, const std::vector<std::byte>& bytes);
  /// Removes the folder, for processes that end without destroying this object.
  void remove() noexcept;
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

private:
  [[nodiscard]] std::filesystem::path path_of(const offered_file& file) const;
  std::filesystem::path folder_;
  owned_descriptor lock_; // held as long as the process lives
};

inline constexpr std::int64_t shards_of_nodes_max = 65'536; // as worker.shards

/// What a node was given by the run that it serves.
struct node_session {
  run_offer offer{};
  std::vector<std::string> missing{};     ///< Keys of requested files that have not arrived.
  std::shared_ptr<run_context> context{}; ///< Null: not loaded yet.
  std::atomic<int> interrupts = 0;        ///< Above 0: programs end between two slices.

  /// Loads the world of the offer from the node's own data and the files that were sent. Fails with all errors. Takes
  /// long and changes nothing; any thread may call it.
  /// @param native_code whether code that was sent may be loaded @param local_rank chooses a CUDA device
  [[nodiscard]] expected<std::shared_ptr<run_context>> load(const node_files& files, bool native_code,
                                                            std::optional<std::int64_t> local_rank = {}) const;
  /// @param threads of the workers
  void lay_out(const node_layout& layout, std::int64_t threads);
};

/// Device of a process that is one of several on its machine: where the setting leads to a CUDA device, the one whose
/// index is the local rank, modulo the number of devices.
[[nodiscard]] std::string device_of_rank(const std::string& setting, std::int64_t local_rank);

} // namespace mneme
