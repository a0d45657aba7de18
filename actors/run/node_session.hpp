/// node_session: what a node has been given by the run that it serves.
#pragma once
#include "actors/run/node_actors.hpp"
#include "runtime/transport/connection_loop.hpp"
#include <filesystem>
namespace mneme {

/// Files that runs have sent, by content, for as long as the process lives, in a folder that goes with it; folders of
/// nodes that were killed go when the next one begins.
class node_files {
public:
  node_files();
  ~node_files();
  node_files(const node_files&) = delete;
  node_files& operator=(const node_files&) = delete;
  /// Empty: it is not there.
  [[nodiscard]] std::filesystem::path find(const offered_file& file) const;
  /// Throws archive_error unless the bytes have the digest that was offered.
  void put(const offered_file& file, const std::vector<std::byte>& bytes);
  /// Before its time: the process ends without destroying it.
  void remove() noexcept;
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

private:
  [[nodiscard]] std::filesystem::path path_of(const offered_file& file) const;
  std::filesystem::path folder_;
  owned_descriptor lock_; // held as long as the process lives
};

inline constexpr std::int64_t shards_of_nodes_max = 65'536; // as worker.shards

struct node_session {
  connection_id connection = 0;
  std::string peer{};
  run_offer offer{};
  bool is_offered = false;
  std::vector<std::string> missing{};     ///< Keys of files that are on their way.
  std::shared_ptr<run_context> context{}; ///< Null: it is not loaded.
  std::atomic<int> interrupts = 0;        ///< Above 0: programs end between two slices.

  node_session(connection_id number, std::string name) : connection(number), peer(std::move(name)) {}
  /// The world of the offer, from the node's own data and the files that were sent; what is wrong with it. Takes long,
  /// and changes nothing: any thread may call it.
  /// @param native_code whether code that was sent may be loaded
  [[nodiscard]] expected<std::shared_ptr<run_context>> load(const node_files& files, bool native_code) const;
  /// @param threads of the workers
  void lay_out(const node_layout& layout, std::int64_t threads);
};

} // namespace mneme
