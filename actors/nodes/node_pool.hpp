/// node_pool: connections of a run to its nodes, from start to end.
#pragma once
#include "actors/nodes/node_messages.hpp"
#include "runtime/transport/connection_loop.hpp"
#include <condition_variable>
#include <filesystem>
#include <set>
namespace mneme {

/// Index of a node, in the order in which nodes were named.
using node_number = std::uint32_t;

struct node_pool_settings {
  std::vector<node_address> addresses{};
  tls_identity_ref identity{}; ///< Null if all addresses are on the loopback.
  connection_limits limits{};
};

/// Offer of a run to all its nodes, with the files that it names.
struct node_offer {
  run_offer offer{};
  std::map<std::string, std::filesystem::path> files{}; ///< By key.
};

/// Callbacks, on the thread of the connections. Must not block.
struct node_pool_hooks {
  std::function<void(node_number, archive::buffer)> reported{}; ///< A message of the kind `report`.
  std::function<void(node_number, const std::string& why)> lost{};
  std::function<void(node_number)> regained{}; ///< A lost node is ready again.
};

/// State of one node.
struct node_view {
  std::string address{}, name{};
  std::int64_t workers = 0;
  bool is_ready = false;
  bool is_named = true;         ///< It is still in the list of nodes.
  bool is_dropped = false;      ///< It was rejected and is not used.
  connection_figures traffic{}; ///< Sum over all its connections.
};

/// Thread-safe. The first calls block: until connected, then until nodes have loaded.
class node_pool final : private connection_watcher {
public:
  explicit node_pool(node_pool_settings settings);

  /// Connects to all nodes. Returns all errors.
  [[nodiscard]] expected<void> connect();
  /// Sends the scenario to every node; nodes load while the run loads.
  void offer(node_offer offered);
  /// Waits until all nodes have loaded the same as the run. Returns all differences. @param world fingerprint of the
  /// run
  /// @param patience time limit from now
  [[nodiscard]] expected<void> await_ready(named_facts world, std::chrono::milliseconds patience);
  /// Starts the work. @pre all nodes are ready
  void begin(const node_layout& layout, node_pool_hooks hooks);

  void send(node_number number, archive message);
  void consumed(node_number number, std::size_t bytes);
  /// Rejects a node: it is not used again until it is removed from the list of nodes and added again.
  void drop(node_number number, const std::string& why);
  /// Tries to reconnect to a lost node; hooks.regained() reports success.
  void reconnect(node_number number);
  /// Replaces the list of nodes: removed nodes are disconnected; new ones take part once they are ready
  /// (hooks.regained()). Returns errors of addresses, which are skipped. Blocks for name resolution. @pre begin() was
  /// called
  [[nodiscard]] diagnostics rename(const std::vector<node_address>& addresses);
  /// Stops programs of all nodes between two slices.
  void interrupt();

  /// Number of nodes that were ever in the list.
  [[nodiscard]] std::size_t size();
  [[nodiscard]] std::int64_t workers();
  [[nodiscard]] node_view view(node_number number);

private:
  enum class stage : std::uint8_t { away, connecting, greeted, loading, ready, at_work };
  struct known_node {
    node_address address{};
    node_place place{};
    connection_id connection = 0;
    stage reached = stage::away;
    bool is_named = true;
    bool is_dropped = false;
    std::set<std::string> sent_files{}; // keys, in this connection
    std::string name{}, peer{};
    std::int64_t workers = 0;
    named_facts world{};
    std::vector<std::string> wrong{};
    connection_figures before{}; // sum over ended connections
  };

  void opened(connection_id id, const std::string& peer, bool accepted) override;
  void received(connection_id id, archive::buffer message) override;
  void closed(connection_id id, const std::string& peer, const std::string& why) override;
  void take(known_node& node, const archive::buffer& message);
  void take(known_node& node, node_message kind, archive& content);
  void take_greeting(known_node& node, archive& content);
  void send_files(known_node& node, const std::vector<std::string>& keys);
  void compare_worlds(known_node& node);
  void refuse(known_node& node, std::vector<std::string> reasons);
  [[nodiscard]] known_node* node_of(connection_id id);
  [[nodiscard]] node_number number_of(const known_node& node) const {
    return static_cast<node_number>(&node - nodes_.data());
  }
  [[nodiscard]] bool any_wrong() const;
  [[nodiscard]] diagnostics all_wrong() const;

  const node_pool_settings settings_;
  std::mutex mutex_; // guards the members up to hooks_
  std::condition_variable changed_;
  std::vector<known_node> nodes_;
  std::optional<node_offer> offer_;
  std::optional<named_facts> world_;
  std::optional<node_layout> layout_;
  node_pool_hooks hooks_;
  connection_loop loop_; // last, so that its thread ends before the members it uses
};

} // namespace mneme
