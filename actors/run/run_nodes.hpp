/// run_nodes: nodes of a run, and processes that join one. Interface of the optional part actors/nodes (CMake switch
/// MNEME_NODES).
#pragma once
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/process_state.hpp"
#include "actors/protocol/run_context.hpp"
#include "actors/protocol/run_end.hpp"
#include "runtime/base/credentials.hpp"
#include "runtime/base/node_address.hpp"
#include "runtime/results/run_directory.hpp"
#include <atomic>
#include <caf/actor_system.hpp>
namespace mneme {

/// Error message of builds without nodes.
inline constexpr const char* no_nodes_in_build = "this build has no cluster support; build with -DMNEME_NODES=ON";

/// Outcome that nodes receive if the run cannot start.
[[nodiscard]] run_end end_for(const diagnostics& errors);

// -- of a run ---------------------------------------------------------------------------------------------------------

/// Options of a run that accepts nodes.
struct accept_options {
  std::optional<node_address> address{}; ///< Address to listen on; nullopt: the run accepts no nodes.
  credentials trust{};                   ///< Required for addresses other than loopback.
  std::int64_t nodes_min = 0;            ///< Number of nodes that must be ready before the run begins.
  std::int64_t ranks = 0;                ///< Number of nodes that a launcher starts; they end with the run.
  /// Launcher's id of the job, which all ranks must share. Empty: it has none; nullopt: no launcher started the run.
  std::optional<std::string> job{};
  std::int64_t workers_min = 0; ///< Number of workers of nodes that must be ready before the run begins.
  bool computes = false;        ///< true: the run's own process shares the work with nodes.
  bool nodes_stay = false;      ///< true: nodes wait for another run when this one is over; false: they end.
  /// Receives the listening address with its port, before anything is loaded; may be null.
  std::function<void(const node_address&)> listening{};
  std::function<void(const std::string&)> log{}; ///< Receives log lines before the run begins; may be null.
};

/// Reason why a run cannot begin with its nodes.
struct node_shortage {
  run_outcome outcome = run_outcome::failed; ///< failed: timeout; bad_input: a node was rejected; interrupted.
  diagnostics reasons{};
};

/// Actors of a run that exchange messages with its nodes.
struct node_links {
  report_sink_actor scheduler{};
  recorder_actor recorder{};
  std::vector<shard_host_actor> local{}; ///< By shard: its host in the run's own process.
};

/// The nodes of one run. The destructor sends them the outcome.
class run_nodes {
public:
  run_nodes() = default;
  virtual ~run_nodes() = default;
  run_nodes(const run_nodes&) = delete;
  run_nodes& operator=(const run_nodes&) = delete;
  /// Sends the scenario to nodes, which load it while the run loads. Fails if they cannot get the data.
  [[nodiscard]] virtual expected<void> offer(const scenario& settings) = 0;
  /// Waits until the minimum of the options is ready. Fails at the timeout, with the reasons of rejected nodes.
  [[nodiscard]] virtual tl::expected<void, node_shortage> await_ready(const run_context& context) = 0;
  /// Lays out the run. On a CPU it has at least as many shards as nodes have workers, and spare shards for nodes that
  /// join later. @pre await_ready() has succeeded
  virtual void lay_out(run_context& context) = 0;
  /// Starts the work of nodes. Returns the actor that routes messages between the scheduler and the hosts of shards.
  [[nodiscard]] virtual placement_actor start(caf::actor_system& system, const run_context_ref& context,
                                              node_links links) = 0;
  /// Ignores all further messages of nodes.
  virtual void detach() = 0;
  /// Waits until no sampled round is recomputed. @pre the placement actor still exists
  virtual void end_replays() = 0;
  /// Sets the outcome that the destructor sends.
  virtual void finish(run_end outcome) = 0;
  /// Returns one record per node, for the summary. Thread-safe.
  [[nodiscard]] virtual std::vector<node_record> records() = 0;
  /// False if a node has returned wrong results, so that this process's checkpoints are invalid.
  [[nodiscard]] virtual bool results_trusted() const = 0;
};
using run_nodes_ref = std::shared_ptr<run_nodes>;

/// Starts to accept nodes, which wait for a scenario. Returns null without an address. Fails for invalid credentials,
/// if it cannot listen, and in builds without MNEME_NODES.
/// @param silence longest accepted silence of a node
/// @param interrupts above 0: await_ready() fails, and nodes end with the run, even with options.nodes_stay
[[nodiscard]] expected<run_nodes_ref> accept_nodes(const accept_options& options, virtual_duration silence,
                                                   const std::atomic<int>* interrupts);
/// Ends the ranks of a launcher when no run begins: listens for at most 30 s and sends them the outcome. No effect if
/// no ranks are expected, or if the address is in use.
void end_ranks(const accept_options& options, const run_end& outcome);

// -- of a node --------------------------------------------------------------------------------------------------------

/// Serves the state of a process until the returned handle is destroyed. Fails with the reason.
using state_server = std::function<expected<std::shared_ptr<const void>>(process_state)>;

/// Time that a rank waits for its lost run to come back, in multiples of worker.node_timeout.
inline constexpr int node_timeouts_of_lost_run = 20;

struct node_settings {
  node_address join{};                      ///< Address at which the run accepts nodes.
  credentials trust{};                      ///< Required for addresses other than loopback.
  std::int64_t threads = 0;                 ///< Number of workers; 0: one per core.
  std::optional<std::int64_t> local_rank{}; ///< Selects a CUDA device of this machine.
  std::chrono::nanoseconds idle_timeout{};  ///< Longest time without a run; 0: unlimited.
  /// Rank among the processes of a launcher. Such a node joins only the run of its job, and ends
  /// node_timeouts_of_lost_run times worker.node_timeout after the loss of its run.
  std::optional<std::int64_t> rank{};
  std::string job{};                ///< Launcher's id of the job; empty if it has none.
  std::chrono::nanoseconds grace{}; ///< Longest time for leaving a run after an interrupt.
  bool native_code = false;   ///< true: accepts model.native_code, which loads modules without a trial in a sandbox.
  state_server serve_state{}; ///< Called at the start; null: no metrics.
  const std::atomic<int>* interrupts = nullptr;  ///< Above 0: leave the run and end.
  std::function<void(const std::string&)> say{}; ///< Logs a line.
};

enum class node_exit : std::uint8_t {
  run_over, ///< The run is over.
  left,     ///< Interrupted, and all shards have moved to other hosts.
  overdue,  ///< Interrupted, and the grace period is over: other hosts rerun the node's rounds.
  idle,     ///< No run was found within the idle timeout.
  lost,     ///< A rank has lost its run, and the run has not come back.
};
struct node_outcome {
  node_exit end = node_exit::run_over;
  run_end run{}; ///< If the run is over: its outcome.
  /// true: a thread is still loading a scenario and cannot be stopped. The process must end without waiting for it.
  bool is_loading = false;
};
/// Joins the run and computes until it is over. Reconnects after a loss. Fails if the run rejects the node, and in
/// builds without MNEME_NODES.
[[nodiscard]] expected<node_outcome> join_run(const node_settings& settings);

/// Writes ca.pem, ca.key, node.pem and node.key, valid for ten years. Fails if one of them exists, and in builds
/// without MNEME_NODES. All nodes of an owner may share them: a peer is accepted if the authority has signed its
/// certificate.
[[nodiscard]] expected<void> make_node_keys(const std::filesystem::path& folder);

// -- registration -----------------------------------------------------------------------------------------------------

/// True if this build contains actors/nodes.
[[nodiscard]] bool has_nodes() noexcept;

/// Functions of actors/nodes that the functions above call.
struct node_support {
  expected<run_nodes_ref> (*accept)(const accept_options&, virtual_duration, const std::atomic<int>*) = nullptr;
  expected<node_outcome> (*join)(const node_settings&) = nullptr;
  expected<void> (*make_keys)(const std::filesystem::path&) = nullptr;
};

/// Registers the functions before main(): `const node_registration line{{.accept = ..., .join = ..., .make_keys =
/// ...}};`
struct node_registration {
  explicit node_registration(const node_support& support) noexcept;
};

} // namespace mneme
