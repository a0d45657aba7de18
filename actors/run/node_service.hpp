/// node_service: a process that computes clients of other processes' runs, one run at a time.
#pragma once
#include "actors/nodes/node_messages.hpp"
#include "actors/run/node_session.hpp"
#include "runtime/results/measurement.hpp"
#include "runtime/transport/connection_loop.hpp"
#include <condition_variable>
#include <deque>
#include <thread>
namespace mneme {

/// Shows measurements, as to Prometheus, until the handle goes; they are asked for by any thread. Fails with what
/// hinders it.
using shown_measurements =
    std::function<expected<std::shared_ptr<const void>>(std::function<std::vector<measurement>()> measure)>;

struct node_service_settings {
  node_address listen{};
  tls_files tls{};                               ///< None: the loopback only.
  std::int64_t threads = 0;                      ///< Workers; 0: one per core.
  bool native_code = false;                      ///< Loads compiled modules that runs send.
  shown_measurements show_measurements{};        ///< Called once the node listens; null: nobody asks for them.
  const std::atomic<int>* interrupts = nullptr;  ///< Above 0: it ends.
  std::function<void(const std::string&)> say{}; ///< A line for the log.
};

enum class node_end : std::uint8_t {
  whole,
  loading, ///< A thread is loading a scenario, which cannot be stopped: the process has to end without waiting for it.
};
/// Serves until it is interrupted. Fails with what is wrong with address or keys.
[[nodiscard]] expected<node_end> serve_as_node(const node_service_settings& settings);

/// What a node says of itself, as a JSON object; what is wrong where it cannot be asked.
[[nodiscard]] expected<std::string> status_of_node(const node_address& address, const tls_files& tls);

/// Strangers are greeted, the first run that agrees is served, and others are told so.
class node_service final : private connection_watcher {
public:
  node_service(node_service_settings settings, tls_identity_ref identity);
  [[nodiscard]] expected<std::uint16_t> listen() { return loop_.listen(settings_.listen); }
  void serve();
  /// After serve(): a thread still loads.
  [[nodiscard]] bool is_loading() const { return loading_ > 0; }
  /// Takes away what it keeps on the disk, where it cannot be destroyed.
  void remove_files() noexcept { files_.remove(); }
  /// Safe from any thread.
  [[nodiscard]] std::vector<measurement> measurements();

private:
  struct said {
    connection_id connection = 0;
    archive::buffer message{};
  };
  struct gone {
    connection_id connection = 0;
    std::string peer{}, why{};
  };
  struct loaded {
    std::shared_ptr<node_session> session{};
    expected<std::shared_ptr<run_context>> world{};
    named_facts facts{}; // of it
  };
  using happening = std::variant<said, gone, loaded>;

  void opened(connection_id id, const std::string& peer, bool accepted) override;
  void received(connection_id id, archive::buffer message) override;
  void closed(connection_id id, const std::string& peer, const std::string& why) override;
  void add(happening next);
  [[nodiscard]] std::optional<happening> next_happening();

  void handle(const said& in);
  void take(const said& in);
  void handle(const gone& in);
  void greet(connection_id id, archive& content);
  void handle(const loaded& in);
  void take_offer(const said& in, archive& content);
  void take_file(archive& content);
  void load();
  [[nodiscard]] std::string status() const;
  void refuse(connection_id id, const std::string& why);
  void let_work(const node_layout& layout);
  void end_session();

  const node_service_settings settings_;
  std::shared_ptr<node_session> session_; // of the run that is served; null: none is
  node_files files_;
  std::mutex mutex_; // guards what follows, up to actors_
  std::condition_variable changed_;
  std::deque<happening> happenings_;
  std::map<connection_id, std::string> peers_;
  connection_id working_ = 0;
  bool direct_ = false;                                      // what comes for the actors goes to them at once
  std::int64_t runs_ = 0;                                    // that it has worked for
  std::shared_ptr<const std::atomic<std::int64_t>> busy_ns_; // of the last of them
  std::shared_ptr<node_actors> actors_;                      // null: no run is at work
  std::atomic<int> loading_ = 0;                             // threads that load
  std::jthread loader_;                                      // the latest of them; each waits for the one before it
  connection_loop loop_;                                     // last: its thread ends before what it uses
};

} // namespace mneme
