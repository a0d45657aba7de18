/// scheduler: carries messages between the federation, which decides, and its peers. It decides nothing itself.
#pragma once
#include "actors/protocol/checkpoint_state.hpp"
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/run_context.hpp"
#include "actors/scheduler/checkpoint_pace.hpp"
#include "runtime/federation/federation.hpp"
#include <caf/typed_response_promise.hpp>
namespace mneme {

struct scheduler_peers {
  server_actor server{};
  std::vector<party_actor> parties{}; ///< By party_id, the server among them; null where the method has none.
  recorder_actor recorder{};
  std::vector<shard_host_actor> shards{}; ///< Who hosts each shard, or knows who does.
  std::vector<worker_actor> workers{};    ///< All that compute in this process.
  placement_actor placement{};            ///< Null where there are no nodes.
};

/// Peers are made when the run begins, because shards need the scheduler's handle.
class scheduler_state {
public:
  static constexpr const char* name = "mneme.scheduler";
  /// `past`: where a run that goes on stood; null: the run begins.
  scheduler_state(scheduler_actor::pointer self, const run_context_ref& context,
                  std::function<scheduler_peers(scheduler_actor)> make_peers, past_ref past);
  scheduler_actor::behavior_type make_behavior();

private:
  caf::result<run_report> run();
  /// Sends what the federation wants, in its order.
  void carry_out();

  /// To the shard that the command names, or to the recorder.
  template <class Command>
  void send(Command command);
  void send(open_task command);
  void send(open_round command);
  void send(evaluate command);
  void send(deliveries command);
  void send(take_step command);
  void send(save_state command);
  void send(restore_state command);
  void send(keep_state command);
  void send(pause);
  void send(run_report ended);

  /// Asks a peer; the answer is an input of the federation.
  template <class Answer, class Peer, class Command>
  void ask(const Peer& peer, Command command);
  [[nodiscard]] const party_actor& party(party_id who) const { return peers_.parties.at(index_of(who)); }
  /// A peer cannot do what it was asked for, so the run ends.
  void fail(const caf::error& why);

  scheduler_actor::pointer self_;
  std::function<scheduler_peers(scheduler_actor)> make_peers_;
  scheduler_peers peers_;
  caf::typed_response_promise<run_report> promise_;
  federation federation_;
  past_ref past_;
  checkpoint_pace pace_;
  std::vector<federation_command> commands_; // kept for its memory
};

} // namespace mneme
