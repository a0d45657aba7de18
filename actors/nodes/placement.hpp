/// placement: routes messages between the scheduler and the hosts of shards, in runs that accept nodes.
#pragma once
#include "actors/nodes/node_pool.hpp"
#include "actors/nodes/node_records.hpp"
#include "actors/nodes/report_validator.hpp"
#include "actors/nodes/shard_map.hpp"
#include "actors/nodes/tensor_caches.hpp"
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/recorder_clock.hpp"
#include "actors/protocol/run_context.hpp"
#include "runtime/federation/shard_journal.hpp"
#include "runtime/transport/polling.hpp"
#include <caf/typed_event_based_actor.hpp>
#include <deque>
namespace mneme {

/// Actors with which the placement actor exchanges messages.
struct placement_links {
  report_sink_actor scheduler{};
  recorder_actor recorder{};
  std::vector<shard_host_actor> local{}; ///< By shard: its host in the run's own process.
  /// Computes a sampled round in the run's own process. The outcome arrives as a replay_report.
  std::function<void(assignment)> replay{};
};

/// Gives every shard a host, keeps its journal, and finds another host if one is lost or leaves.
class placement_state {
public:
  static constexpr const char* name = "mneme.placement";
  /// @param records receives the records of nodes for summary.json
  placement_state(placement_actor::pointer self, run_context_ref context, std::shared_ptr<node_pool> nodes,
                  std::shared_ptr<node_records> records, placement_links peers);
  placement_actor::behavior_type make_behavior();

private:
  struct pending_report { // A report that waits for earlier reports, or for the replay of one of its sampled rounds.
    wave_report report{};
    std::size_t bytes = 0; // size of the message that carried it
    std::int64_t busy_ns = 0;
  };
  struct node_state {
    std::unique_ptr<run_tensor_cache> tensors{};
    std::int64_t busy_ns = 0; // computing time in its current session
    std::optional<recorder_stopwatch> away{}, leaving{};
    std::chrono::milliseconds grace{}; // time from `leaving` until it disconnects
  };

  // -- messages from the scheduler
  template <class Command>
  void on_command(Command command);
  void return_to_preferred(shard_id shard);
  [[nodiscard]] bool can_move(const shard_journal& journal, const shard_location& from) const;
  void count_rerun(const shard_location& host, const shard_journal& journal);
  void forward(shard_id shard);
  void send(shard_location to, shard_id shard, shard_journal::command order);
  [[nodiscard]] archive encode(node_state& node, shard_journal::command& command) const;
  void keep_polling();

  // -- messages from hosts of shards
  void on_frame(const node_frame& in);
  void on_report(archive& content, node_number number, std::size_t bytes);
  void on_local_report(wave_report& report);
  void on_replay(replay_report& outcome);
  void accept_reports(shard_id shard);
  [[nodiscard]] bool accept_next_report(shard_id shard, node_number number);
  void accept(pending_report held, shard_id shard, node_number number);
  void reject(node_number number, const std::string& reason);
  void end_for_other_result(node_number number, const std::string& reason);

  // -- changes of nodes
  void on_change(const node_status_change& change);
  void join(node_number number);
  void leave(node_number number, std::chrono::milliseconds grace);
  void move_shards_from(node_number number);
  void drain(shard_id shard, node_number number);
  void end_leave_if_empty(node_number number);
  void on_node_lost(node_number number, const std::string& reason);
  void assign_orphaned_shards();
  void check_nodes();
  void warn(const std::string& text) { self_->send(peers_.recorder, run_warning{.text = text}); }

  placement_actor::pointer self_;
  run_context_ref context_;
  std::shared_ptr<node_pool> pool_;
  std::shared_ptr<node_records> records_;
  placement_links peers_;
  shard_map map_;
  std::vector<shard_journal> journals_; // by shard
  report_validator validator_;
  std::vector<std::deque<pending_report>> held_; // by shard: reports of its current host that are not accepted yet
  std::vector<node_state> nodes_;
  bool interrupted_ = false;
  spin_window awake_; // limits polling on the thread shared with scheduler and server
};

} // namespace mneme
