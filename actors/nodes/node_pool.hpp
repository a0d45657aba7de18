/// node_pool: accepts the nodes of a run and holds their connections, from start to end.
#pragma once
#include "actors/nodes/node_messages.hpp"
#include "runtime/transport/connection_loop.hpp"
#include <condition_variable>
#include <filesystem>
#include <set>
namespace mneme {

/// Index of a node, in the order in which nodes joined.
using node_number = std::uint32_t;

/// Offer of a run to all its nodes, with the files that it names.
struct node_offer {
  run_offer offer{};
  std::map<std::string, std::filesystem::path> files{}; ///< By key.
};

struct node_pool_settings {
  node_address listen{};
  tls_identity_ref identity{}; ///< Null: only the loopback.
  connection_limits limits{};
  node_offer offer{};
  std::function<void(const std::string&)> log{}; ///< Lines before begin(), from any thread.
  bool nodes_stay = false; ///< Nodes wait for another run when this one is over; otherwise they end.
};

/// What a run waits for before it begins.
struct node_minimum {
  std::int64_t nodes = 0, workers = 0;
  std::chrono::milliseconds timeout{};
};

/// Callbacks, on the thread of the connections. Must not block.
struct node_pool_hooks {
  std::function<void(node_number, archive::buffer)> reported{}; ///< A message of the kind `report`.
  std::function<void(node_number)> joined{};                    ///< A node is ready for work.
  std::function<void(node_number)> leaving{};                   ///< A node wants to leave.
  std::function<void(node_number, const std::string& why)> lost{};
  std::function<void(const std::string& text)> warn{};
};

/// State of one node.
struct node_view {
  std::string address{}, name{}; ///< Of its latest connection.
  std::int64_t workers = 0;
  bool is_ready = false;
  bool is_initial = false;      ///< It was ready when the run began.
  bool is_dropped = false;      ///< It was rejected and is not used again.
  connection_figures traffic{}; ///< Sum over all its connections.
};

/// Thread-safe.
class node_pool final : private connection_watcher {
public:
  explicit node_pool(node_pool_settings settings);
  ~node_pool() override; ///< Tells nodes that the run is over, and waits for them for a moment.
  node_pool(const node_pool&) = delete;
  node_pool& operator=(const node_pool&) = delete;

  /// Starts to accept nodes, which load the scenario while the run loads. Returns the port.
  [[nodiscard]] expected<std::uint16_t> listen();
  /// Waits until the minimum is ready. Fails at the timeout, and at once if nodes are counted and one cannot take part.
  /// @param world fingerprint of the run, which all nodes must have @param interrupts above 0: stop waiting
  [[nodiscard]] expected<void> await_ready(named_facts world, const node_minimum& minimum,
                                           const std::atomic<int>* interrupts);
  /// Starts the work: hooks.joined() is called for every node that is ready, now and later.
  void begin(const node_layout& layout, node_pool_hooks hooks);

  void send(node_number number, archive message);
  void consumed(node_number number, std::size_t bytes);
  /// Rejects a node: it is not used again in this run.
  void drop(node_number number, const std::string& why);
  /// Lets a node that leaves go.
  void release(node_number number);
  /// Stops programs of all nodes between two slices.
  void interrupt();
  /// Calls no hook from now on.
  void detach();

  /// Number of nodes that have ever joined.
  [[nodiscard]] std::size_t size();
  /// Sum over nodes that are ready.
  [[nodiscard]] std::int64_t workers();
  [[nodiscard]] node_view view(node_number number);

private:
  enum class stage : std::uint8_t { away, loading, ready, at_work };
  struct node_state {
    std::uint64_t process = 0;
    connection_id connection = 0;
    stage reached = stage::away;
    bool is_initial = false, is_dropped = false;
    std::set<std::string> sent_files{}; // keys, in this connection
    std::string name{}, address{};
    std::int64_t workers = 0;
    named_facts world{};
    connection_figures before{}; // sum over ended connections
  };

  void opened(connection_id id, const std::string& peer, bool accepted) override;
  void received(connection_id id, archive::buffer message) override;
  void closed(connection_id id, const std::string& peer, const std::string& why, bool may_retry) override;
  void handle(connection_id id, const archive::buffer& message);
  void handle(node_state& node, node_message kind, archive& content);
  void greet(connection_id id, archive& content);
  [[nodiscard]] node_state* find_or_add(std::uint64_t process);
  void send_files(node_state& node, const std::vector<std::string>& keys);
  void compare_worlds(node_state& node);
  void start_work(node_state& node);
  void refuse(connection_id id, const std::string& node, std::vector<std::string> reasons);
  void log(const std::string& text);
  [[nodiscard]] node_state* node_of(connection_id id);
  [[nodiscard]] std::string describe(connection_id id) const;
  [[nodiscard]] node_number number_of(const node_state& node) const {
    return static_cast<node_number>(&node - nodes_.data());
  }
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> ready_nodes_and_workers() const;

  const node_pool_settings settings_;
  node_address address_; // as listened on
  std::mutex mutex_;     // guards the members up to hooks_
  std::condition_variable changed_;
  std::vector<node_state> nodes_;
  std::map<connection_id, std::string> peers_; // addresses of all connections
  diagnostics refused_;                        // nodes that cannot take part, before begin()
  std::set<std::string> rejections_;           // of unknown peers: reasons, each logged once
  std::optional<named_facts> world_;
  std::optional<node_layout> layout_;
  node_pool_hooks hooks_;
  connection_loop loop_; // last, so that its thread ends before the members it uses
};

} // namespace mneme
