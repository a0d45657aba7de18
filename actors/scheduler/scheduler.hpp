/// scheduler: actor that carries messages between the federation, which makes all decisions, and the other actors.
#pragma once
#include "actors/protocol/checkpoint_state.hpp"
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/run_context.hpp"
#include "actors/scheduler/checkpoint_throttle.hpp"
#include "runtime/federation/federation.hpp"
#include <caf/typed_response_promise.hpp>
namespace mneme {

struct scheduler_links {
  server_actor server{};
  std::vector<party_actor> parties{}; ///< Indexed by party_id; null if the method has no such party.
  recorder_actor recorder{};
  std::vector<shard_host_actor> shards{}; ///< By shard: its host, or the actor that forwards to the host.
  std::vector<worker_actor> workers{};    ///< All workers of this process.
  placement_actor placement{};            ///< Null if there are no nodes.
};

/// The other actors are created when the run starts, because shards need the scheduler's handle.
class scheduler_state {
public:
  static constexpr const char* name = "mneme.scheduler";
  /// @param past state with which a run resumes; null for a new run
  scheduler_state(scheduler_actor::pointer self, const run_context_ref& context,
                  std::function<scheduler_links(scheduler_actor)> make_peers, resume_state_ref past);
  scheduler_actor::behavior_type make_behavior();

private:
  caf::result<run_report> run();
  /// Sends the pending commands of the federation in order.
  void carry_out();

  /// Sends a command to the shard that it names or to the recorder.
  template <class Command>
  void send(Command command);
  void send(open_task command);
  void send(open_round command);
  void send(evaluate command);
  void send(deliveries command);
  void send(take_step command);
  void send(save_state command);
  void send(restore_state command);
  void send(save_checkpoint command);
  void send(pause);
  void send(run_report ended);

  /// Sends a request to an actor. The reply becomes an input of the federation.
  template <class Answer, class Peer, class Command>
  void request(const Peer& peer, Command command);
  template <class Answer, class Command>
  void request_party(Command command); ///< Sends the command to the party `command.to`.
  [[nodiscard]] const party_actor& party(party_id who) const { return peers_.parties.at(index_of(who)); }
  /// Ends the run after an error of another actor.
  void fail(const caf::error& reason);

  scheduler_actor::pointer self_;
  std::function<scheduler_links(scheduler_actor)> make_peers_;
  scheduler_links peers_;
  caf::typed_response_promise<run_report> promise_;
  federation federation_;
  resume_state_ref past_;
  checkpoint_throttle pace_;
  std::vector<federation_command> commands_; // reused to avoid allocation
};

} // namespace mneme
