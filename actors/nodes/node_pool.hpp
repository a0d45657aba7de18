/// node_pool: the nodes of a run, from the first connection to the end, as the run's process sees them.
#pragma once
#include "actors/nodes/node_messages.hpp"
#include "runtime/transport/connection_loop.hpp"
#include <condition_variable>
#include <filesystem>
#include <set>
namespace mneme {

/// Which of a run's nodes, in the order in which they were named.
using node_number = std::uint32_t;

struct node_pool_settings {
  std::vector<node_address> addresses{};
  tls_identity_ref identity{}; ///< Null: all addresses are on the loopback.
  connection_limits limits{};
};

/// What a run brings its nodes: one offer for all, and the files that it names.
struct node_offer {
  run_offer offer{};
  std::map<std::string, std::filesystem::path> files{}; ///< By key.
};

/// Who is told of nodes at work. Called on the connections' thread, which it must not keep.
struct node_pool_hooks {
  std::function<void(node_number, archive::buffer)> reported{}; ///< A message of the kind `report`.
  std::function<void(node_number, const std::string& why)> lost{};
  std::function<void(node_number)> regained{}; ///< A node that was lost is ready again.
};

/// What is known of one node.
struct node_view {
  std::string address{}, name{};
  std::int64_t workers = 0;
  bool is_ready = false;
  bool is_named = true;         ///< It is one of the run's nodes still.
  bool is_dropped = false;      ///< It is left alone.
  connection_figures traffic{}; ///< Over all its connections.
};

/// Safe to use from several threads. The first calls wait: for connections, then for what nodes load.
class node_pool final : private connection_watcher {
public:
  explicit node_pool(node_pool_settings settings);

  /// Connects to all nodes; what is wrong with any of them.
  [[nodiscard]] expected<void> connect();
  /// Gives every node the scenario: they load while the run does.
  void offer(node_offer offered);
  /// Waits until all have loaded the same as the run; what differs. @param world of the run
  /// @param patience how long nodes may take from now on
  [[nodiscard]] expected<void> await_ready(named_facts world, std::chrono::milliseconds patience);
  /// Work may follow. @pre all are ready
  void begin(const node_layout& layout, node_pool_hooks hooks);

  void send(node_number number, archive message);
  void consumed(node_number number, std::size_t bytes);
  /// A node whose answers are not to be taken is left alone from now on, until the run is told of it anew.
  void drop(node_number number, const std::string& why);
  /// Tries again to reach a node that was lost; hooks.regained() says if it worked.
  void reconnect(node_number number);
  /// These are the nodes from now on: others are left, and new ones take part once they are ready, as
  /// hooks.regained() says. What is wrong with addresses, which are passed over. Waits for name servers. @pre begin()
  [[nodiscard]] diagnostics rename(const std::vector<node_address>& addresses);
  /// Programs of all nodes end between two slices.
  void interrupt();

  /// All that were named at any time.
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
    connection_figures before{}; // of connections that have ended
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
  std::mutex mutex_; // guards what follows, up to hooks_
  std::condition_variable changed_;
  std::vector<known_node> nodes_;
  std::optional<node_offer> offer_;
  std::optional<named_facts> world_;
  std::optional<node_layout> layout_;
  node_pool_hooks hooks_;
  connection_loop loop_; // last: its thread ends before what it uses
};

} // namespace mneme
