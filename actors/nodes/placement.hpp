/// placement: routes messages between the scheduler and the hosts of shards, in runs with nodes.
#pragma once
#include "actors/nodes/node_pool.hpp"
#include "actors/nodes/node_records.hpp"
#include "actors/nodes/report_checks.hpp"
#include "actors/nodes/shard_map.hpp"
#include "actors/nodes/shared_tensors.hpp"
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/recorder_clock.hpp"
#include "actors/protocol/run_context.hpp"
#include "runtime/federation/shard_journal.hpp"
#include "runtime/transport/polling.hpp"
#include <caf/typed_event_based_actor.hpp>
#include <deque>
namespace mneme {

/// Actors with which it exchanges messages.
struct placement_peers {
  report_taker_actor scheduler{};
  recorder_actor recorder{};
  std::vector<shard_host_actor> here{}; ///< By shard: its host in the run's own process.
  /// Verifies a round in this process; results arrive as home_reports.
  std::function<void(assignment)> compute_here{};
};

/// Gives every shard a host, keeps its journal, and finds another host if one is lost.
class placement_state {
public:
  static constexpr const char* name = "mneme.placement";
  /// @param records receives the records of nodes for the summary
  placement_state(placement_actor::pointer self, run_context_ref context, std::shared_ptr<node_pool> nodes,
                  std::shared_ptr<node_records> records, placement_peers peers);
  placement_actor::behavior_type make_behavior();

private:
  struct held_report { // waits for a local result, or for earlier reports
    wave_report report{};
    std::size_t bytes = 0; // size of its message
    std::int64_t busy_ns = 0;
  };
  struct known_node {
    std::unique_ptr<run_side_tensors> tensors{};
    std::int64_t busy_ns = 0; // of its current session
    std::optional<recorder_stopwatch> away{};
    bool has_joined = true;                   // since it was added
    bool is_refused = false;                  // before it joined; reported
    bool is_unchecked = false;                // the run contains unverified results of it
    recorder_stopwatch silent{};              // since its last report, or the first unanswered request
    std::uint64_t bytes_before = 0;           // of its traffic, at that time
    std::optional<assignment_id> measured{};  // round that is computed here to measure its duration,
    std::optional<double> measured_seconds{}; // and the measured duration
  };

  template <class Command>
  void take(Command command);
  void take(const node_frame& in);
  void take_report(archive& content, node_number number, std::size_t bytes);
  void take(const home_report& told);
  void go_on_with_reports(shard_id shard);
  [[nodiscard]] bool take_next_report(shard_id shard, node_number number);
  void accept(held_report held, shard_id shard, node_number number);
  void compute_here(const assignment& given, shard_id shard);
  void refuse(node_number number, const std::string& why, bool has_other_results = false);
  void look_for_owed_answers();
  void look_at_silence(node_number number, std::size_t rounds_owed, const assignment* first, shard_id at);
  [[nodiscard]] bool is_left_alone() const;
  void take_from_here(wave_report& report);
  void change(const node_change& told);
  void lose(node_number number, const std::string& why);
  void look_at_names();
  void place_homeless();
  void look_around();
  void stay_awake();
  void bring_home(shard_id shard);
  void pass_on(shard_id shard);
  void send(shard_place to, shard_id shard, shard_journal::command order);
  [[nodiscard]] archive encoded(known_node& node, shard_journal::command& command) const;
  void warn(const std::string& text) { self_->send(peers_.recorder, run_warning{.text = text}); }

  placement_actor::pointer self_;
  run_context_ref context_;
  std::shared_ptr<node_pool> pool_;
  std::shared_ptr<node_records> records_;
  placement_peers peers_;
  shard_map map_;
  std::vector<shard_journal> journals_; // by shard
  report_checks checks_;
  std::vector<std::deque<held_report>> held_; // by shard, from its current host
  std::vector<known_node> nodes_;
  bool interrupted_ = false;
  awake_time awake_; // of the thread shared with scheduler and server
};

} // namespace mneme
