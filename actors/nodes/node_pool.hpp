/// node_pool: accepts the nodes of a run and owns their connections.
#pragma once
#include "actors/nodes/node_messages.hpp"
#include "actors/protocol/recorder_clock.hpp"
#include "actors/run/run_nodes.hpp"
#include "runtime/transport/connection_loop.hpp"
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <set>
namespace mneme {

/// Index of a node, in the order of joining.
using node_number = std::uint32_t;

/// First message of a run to each node, with the files that it offers.
struct node_offer {
  run_offer offer{};
  std::map<std::string, std::filesystem::path> files{}; ///< Paths by scenario key.
};

struct node_pool_settings {
  node_address listen{};
  tls_identity_ref identity{}; ///< Null: only loopback addresses are accepted.
  connection_limits limits{};
  std::int64_t ranks = 0; ///< Number of nodes that a launcher starts; the destructor waits for those that connect late.
  /// Launcher's id of the job. Ranks of other jobs are rejected. Empty: it has none; nullopt: no launcher.
  std::optional<std::string> job{};
  std::function<void(const std::string&)> log{}; ///< Receives log lines before begin(), from any thread.
  bool nodes_stay = false; ///< true: nodes wait for another run when this one is over; false: they end.
  /// Above 0: await_ready() stops waiting for nodes and fails. Nodes end with the run, even with nodes_stay.
  const std::atomic<int>* interrupts = nullptr;
};

/// Numbers of nodes and workers that must be ready before the run begins, and the longest wait for them.
struct node_minimum {
  std::int64_t nodes = 0, workers = 0;
  std::chrono::milliseconds timeout{};
};

/// Callbacks on the connections' thread; they must not block.
struct node_pool_hooks {
  std::function<void(node_number, archive::buffer)> reported{}; ///< A node has sent a message of kind `report`.
  std::function<void(node_number)> joined{};                    ///< A node is ready for work.
  /// A node leaves the run. It disconnects after the grace period, even if it still has shards.
  std::function<void(node_number, std::chrono::milliseconds grace)> leaving{};
  std::function<void(node_number, const std::string& reason)> lost{};
  std::function<void(const std::string& text)> warn{};
};

/// State of one node.
struct node_view {
  std::string address{}, name{}; ///< Address and name in the latest connection.
  std::int64_t workers = 0;
  bool is_ready = false;
  bool is_initial = false;    ///< true: the node was ready when the run began.
  bool is_dropped = false;    ///< true: the node was rejected and is not used again.
  connection_stats traffic{}; ///< Sum over all connections of the node.
};

/// Holds all nodes of a run from listen() to the destructor. Nodes that connect before offer() wait. Thread-safe.
class node_pool final : private connection_watcher {
public:
  explicit node_pool(node_pool_settings settings);
  /// Unless nodes stay: sends the outcome to all nodes and waits at most 1 s for them to disconnect. Ranks that have
  /// not connected yet get it if they connect within 30 s of listen(). Rejected nodes have time to read their reasons.
  ~node_pool() override;
  node_pool(const node_pool&) = delete;
  node_pool& operator=(const node_pool&) = delete;

  /// Starts to accept nodes. Returns the port, or the error of the socket.
  [[nodiscard]] expected<std::uint16_t> listen();
  /// Sends the scenario to all nodes, present and later ones; they load it while the run loads.
  void offer(node_offer offered);
  /// Sets the outcome that the destructor sends to nodes.
  void finish(run_end outcome);
  /// Waits until the minimum is ready. Fails at the timeout. If a number of nodes is required, it also fails as soon as
  /// a node cannot take part.
  /// @param fingerprint fingerprint of the run, which every node must match
  [[nodiscard]] tl::expected<void, node_shortage> await_ready(fingerprint_fields fingerprint,
                                                              const node_minimum& minimum);
  /// Starts the work. hooks.joined() is called for each ready node and for each that becomes ready later.
  void begin(const node_layout& layout, node_pool_hooks hooks);

  void send(node_number number, archive message);
  void consumed(node_number number, std::size_t bytes);
  /// Rejects a node: its connection closes, and it is not used again in this run.
  void drop(node_number number, const std::string& reason);
  /// Lets a leaving node disconnect.
  void release(node_number number);
  /// Ends the programs of all nodes between two slices.
  void interrupt();
  /// Replaces all hooks with functions that do nothing.
  void detach();

  /// Number of nodes that have joined so far, including lost ones.
  [[nodiscard]] std::size_t size();
  /// Number of workers of all ready nodes.
  [[nodiscard]] std::int64_t workers();
  [[nodiscard]] node_view view(node_number number);

private:
  enum class stage : std::uint8_t { away, greeted, loading, ready, at_work };
  struct node_state {
    std::uint64_t process = 0;
    connection_id connection = 0;
    stage reached = stage::away;
    bool is_initial = false, is_dropped = false;
    std::set<std::string> sent_files{}; // keys of files sent in this connection
    std::string name{}, address{};
    std::int64_t workers = 0, rank = -1; // rank: -1 without a launcher
    fingerprint_fields fingerprint{};
    connection_stats before{}; // sum over the node's closed connections
  };

  void opened(connection_id id, const std::string& peer, bool accepted) override;
  void received(connection_id id, archive::buffer message) override;
  void closed(connection_id id, const std::string& peer, const std::string& reason, bool may_retry) override;
  void handle(connection_id id, const archive::buffer& message);
  void handle(node_state& node, node_message kind, archive& content);
  void greet(connection_id id, archive& content);
  [[nodiscard]] std::string other_run_error(const node_hello& from) const;
  [[nodiscard]] node_state* find_or_add(std::uint64_t process);
  void send_offer(node_state& node);
  void close(connection_id id, const std::string& reason);
  void send_end(node_state& node, const run_end& outcome, const std::string& reason);
  void send_files(node_state& node, const std::vector<std::string>& keys);
  void compare_fingerprints(node_state& node);
  void start_work(node_state& node);
  void refuse(connection_id id, const std::string& node, std::vector<std::string> reasons);
  [[nodiscard]] std::int64_t missing_ranks() const;
  void log(const std::string& text);
  void log_rejection(const std::string& peer, const std::string& reason);
  [[nodiscard]] bool is_interrupted() const { return settings_.interrupts && settings_.interrupts->load() > 0; }
  [[nodiscard]] node_state* node_of(connection_id id);
  [[nodiscard]] std::string describe(connection_id id) const;
  [[nodiscard]] node_number number_of(const node_state& node) const {
    return static_cast<node_number>(&node - nodes_.data());
  }
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> ready_nodes_and_workers() const;

  const node_pool_settings settings_;
  node_address address_;                        // address of the listening socket
  std::optional<recorder_stopwatch> listening_; // time since listen() succeeded
  std::mutex mutex_;                            // guards the members up to hooks_
  std::condition_variable changed_;
  std::vector<node_state> nodes_;
  std::map<connection_id, std::string> peers_; // addresses of all connections
  std::set<connection_id> closing_;            // connections whose last message has been queued
  std::optional<node_offer> offer_;            // unset: nodes have to wait
  run_end outcome_;                            // sent by the destructor
  bool has_ended_ = false;                     // true: the run has ended, and nodes that connect get its outcome
  std::int64_t rejected_peers_ = 0;            // number of peers rejected because of their credentials or hello
  bool ranks_overdue_ = false;                 // true: some ranks did not connect in time
  diagnostics refused_;                        // errors of nodes that cannot take part, collected before begin()
  std::set<std::string> rejections_;           // rejections of unknown peers that have been logged
  std::optional<fingerprint_fields> fingerprint_;
  std::optional<node_layout> layout_;
  node_pool_hooks hooks_;
  connection_loop loop_; // last, so that its thread ends before the members it uses
};

} // namespace mneme
