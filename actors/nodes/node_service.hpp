/// node_service: joins a run from another process and computes clients for it.
#pragma once
#include "actors/nodes/node_messages.hpp"
#include "actors/nodes/node_session.hpp"
#include "actors/protocol/recorder_clock.hpp"
#include "actors/run/run_nodes.hpp"
#include "runtime/transport/connection_loop.hpp"
#include <condition_variable>
#include <deque>
#include <thread>
namespace mneme {

/// Implements join_run().
[[nodiscard]] expected<node_outcome> serve_run(const node_settings& settings);

/// Uses three threads: for the connection, for events, and for loading the scenario.
class node_service final : private connection_watcher {
public:
  node_service(node_settings settings, tls_identity_ref identity);
  /// Runs until the node ends. Fails if the run rejects the node.
  [[nodiscard]] expected<node_exit> serve();
  /// Outcome of the run, if serve() has returned run_over.
  [[nodiscard]] const run_end& outcome() const { return run_end_; }
  /// True if a thread is still loading after serve() has returned.
  [[nodiscard]] bool is_loading() const { return loading_ > 0; }
  /// Removes the files that runs have sent, for a service that is never destroyed.
  void remove_files() noexcept { files_.remove(); }
  /// Metrics of the node, its actors and the process in Prometheus' text format. Thread-safe.
  [[nodiscard]] std::string metrics();
  /// Reason why the node is not ready; empty if it has joined a run and loaded its scenario. Thread-safe.
  [[nodiscard]] std::string pending();

private:
  struct message_received {
    archive::buffer message{};
  };
  struct connection_closed {
    connection_id connection = 0;
    std::string reason{};
    bool may_retry = true;
  };
  struct scenario_loaded {
    std::shared_ptr<node_session> session{};
    expected<std::shared_ptr<run_context>> context{};
    fingerprint_fields facts{}; // fingerprint of the loaded run
  };
  using service_event = std::variant<message_received, connection_closed, scenario_loaded>;

  void opened(connection_id id, const std::string& peer, bool accepted) override;
  void received(connection_id id, archive::buffer message) override;
  void closed(connection_id id, const std::string& peer, const std::string& reason, bool may_retry) override;
  void add(service_event next);
  [[nodiscard]] std::optional<service_event> next_event();

  [[nodiscard]] expected<std::optional<node_exit>> check_time();
  [[nodiscard]] expected<void> connect();
  void retry_later(const std::string& reason);
  void handle(const message_received& in);
  void handle(const connection_closed& in);
  void handle(const scenario_loaded& in);
  void handle(node_message kind, archive& content, const archive::buffer& message);
  void take_offer(archive& content);
  void take_file(archive& content);
  void on_rejection(archive& content);
  void on_end(archive& content);
  void load();
  void start_work(const node_layout& layout);
  void end_session();
  void send(archive message) { loop_.send(connection_, std::move(message)); }
  void set_pending(std::string reason);

  const node_settings settings_;
  const std::uint64_t process_; // random number; distinguishes a reconnect from a new node
  node_files files_;
  connection_id connection_ = 0;           // 0: not connected
  std::shared_ptr<node_session> session_;  // null: no run joined
  recorder_stopwatch idle_, waited_;       // since the end of the last run; since the last attempt to connect
  std::optional<recorder_stopwatch> lost_; // for a rank: time since it lost rank 0; nullopt: it has an offer
  std::chrono::duration<double> lost_limit_{};
  std::atomic<bool> was_opened_ = false; // true: the latest connection was established
  std::chrono::milliseconds backoff_{};
  std::string last_problem_;
  std::optional<recorder_stopwatch> leaving_; // time since the node began to leave; nullopt: it accepts work
  std::optional<diagnostics> failure_;        // errors of loading; the node ends once the connection is closed
  std::optional<expected<node_exit>> ended_;
  run_end run_end_;
  std::mutex mutex_; // guards the members up to actors_
  std::condition_variable changed_;
  std::deque<service_event> events_;
  connection_id working_ = 0;
  bool direct_ = false;                                      // true: received() passes work directly to the actors
  std::string pending_ = "connects to the run";              // reason why the node is not ready; empty: it is ready
  std::int64_t runs_ = 0;                                    // number of runs in which the node has taken part
  std::shared_ptr<const std::atomic<std::int64_t>> busy_ns_; // computing time in the latest run, in nanoseconds
  std::shared_ptr<node_actors> actors_;                      // null: no work has been assigned
  std::atomic<int> loading_ = 0;                             // number of loading threads
  std::jthread loader_;                                      // latest loading thread; each waits for the one before it
  connection_loop loop_;                                     // last, so that its thread ends before the members it uses
};

} // namespace mneme
