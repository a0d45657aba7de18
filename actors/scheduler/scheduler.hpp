/// scheduler: owns virtual time. Opens and closes rounds, draws cohorts, delivers uploads, and
/// lets real work run only when virtual time needs it.
#pragma once
#include "actors/protocol/checkpoint_state.hpp"
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/world.hpp"
#include "actors/scheduler/checkpoint_pace.hpp"
#include "actors/scheduler/departures.hpp"
#include "actors/scheduler/flights.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/population/client_set.hpp"
#include "runtime/population/presence.hpp"
#include "runtime/storage/memory_book.hpp"
#include <caf/typed_response_promise.hpp>
#include <unordered_map>
namespace mneme {

struct scheduler_peers {
  server_actor server{};
  recorder_actor recorder{};
  std::vector<shard_actor> shards{};
};

/// Peers are made when the run begins, because shards need the scheduler's handle.
class scheduler_state {
public:
  static constexpr const char* name = "mneme.scheduler";
  /// `past`: where a run that goes on stood; null: the run begins.
  scheduler_state(scheduler_actor::pointer self, world_ref world,
                  std::function<scheduler_peers(scheduler_actor)> make_peers, past_ref past);
  scheduler_actor::behavior_type make_behavior();

private:
  /// What can happen in virtual time. `progress`: the present stage of a client's round is over;
  /// `arrival`: its upload reaches the server; `drop_out`: it vanishes at work; `presence`: clients come, go, or change
  /// task by themselves.
  struct event {
    enum class kind : std::uint8_t { progress, arrival, drop_out, deadline, presence } what = kind::progress;
    assignment_id flight{};
    round_id round{};
    void persist(archive& all) { all(what)(flight)(round); }
  };

  /// All that an idle client costs, besides its rows and what it remembers.
  struct client_record {
    std::uint32_t visits : 31 = 0; ///< Assignments so far.
    std::uint32_t busy : 1 = 0;    ///< At work, or dropped out of the open round.
  };
  static_assert(sizeof(client_record) == 4);

  /// What is done next where nothing is under way: the places at which a checkpoint may be taken.
  enum class next_step : std::uint8_t { task, round, event };
  /// When a run goes on that takes a checkpoint: when the state is copied, or when it is on the disk.
  enum class when_done : std::uint8_t { copied, written };

  // scheduler.cpp: the run, and virtual time
  caf::result<run_report> run();
  void advance();
  [[nodiscard]] bool needs_answer(const event& next);
  [[nodiscard]] bool may_go_on_meanwhile();
  void handle(const event& now);
  void finish(run_status status, std::string error = {});
  template <class Answer, class Message, class Then>
  void ask_server(Message message, Then then);
  template <class Message>
  void tell_server(Message message);
  template <class Message>
  void tell_recorder(Message message);
  /// Where virtual time stands; of a run that fails, where it stood when the failing wave was begun.
  [[nodiscard]] virtual_time now() const { return failure_ ? wave_start_.at : queue_.now(); }
  void record(const char* actor, const char* what, std::optional<client_id> who, std::int64_t bytes = 0);
  void flush_events();

  // waves.cpp: real work
  void begin_wave(assignment_id top);
  void start_waiting();
  [[nodiscard]] bool may_run_at_once();
  void release_for(assignment_id top);
  void count(const std::map<shard_id, std::vector<composition>>& batches);
  void send(std::map<shard_id, std::vector<composition>> batches);
  void take(wave_report& report);
  void learn(const wave_report& report);
  void fail_foretelling(const flight& one, job_id at);
  void end_wave();
  void note_wave_start();
  void forget_wave();

  // recalls.cpp: results that memory has no room for
  [[nodiscard]] std::int64_t results_max() const;
  void give_up_results();
  void recall(assignment_id top);
  [[nodiscard]] std::vector<assignment_id> by_arrival(const std::function<bool(const flight&)>& wanted);

  // rounds.cpp: tasks, rounds, deliveries
  void begin_task(task_id which);
  void warn_of_own_rounds();
  void begin_round();
  void open(opened_round opened);
  void try_dispatch();
  [[nodiscard]] std::vector<client_id> cohort();
  [[nodiscard]] bool available(client_id who) const;
  void dispatch(client_id who);
  [[nodiscard]] broadcast_ref broadcast_in(task_id which);
  [[nodiscard]] std::int64_t foretold_bytes(const tensors_ref& weights);
  void free(client_id who);
  void depart(const flight& one);
  void progress_of(flight& one);
  void deliver(flight& one);
  void hand_over_deliveries();
  void deadline_passed();
  void abandon_flights(const std::vector<assignment_id>& which, const char* why);
  void close();
  void round_closed();
  void evaluate_round(bool end_of_task);
  void take(const evaluated& result, bool end_of_task);
  void next_round();

  // async.cpp: a server that steps as uploads come
  [[nodiscard]] bool is_async() const noexcept { return world_->what.rounds.mode == round_mode::async; }
  void fill_places();
  [[nodiscard]] std::vector<client_id> drawn_from_idle(std::int64_t wanted);
  void list_idle();
  [[nodiscard]] std::int64_t uploads_of_step() const noexcept;
  void begin_to_vanish(flight& one);
  void vanish(flight& one);
  [[nodiscard]] delivery delivery_of(const flight& one, client_result result) const;

  // comings.cpp: clients that come, go, or change task by themselves
  void expect_change();
  void keep_up();
  void presence_changes();
  void take(const presence_change& change);
  void leave(client_id who);
  [[nodiscard]] memory_ref remembered(client_id who);
  void remember(client_id who, memory_ref what);
  [[nodiscard]] bool somebody_may_come() const;
  [[nodiscard]] bool may_leave_at_work() const;

  // checkpoints.cpp: where a run can go on
  void go_on();
  void checkpoint_then_go_on(next_step next);
  void stop_at(next_step next);
  void end_interrupted();
  void take_checkpoint(when_done goes_on, void (scheduler_state::*then)());
  void persist(archive& all);
  void persist_memories(archive& all);
  void persist_flights(archive& all);
  void persist(archive& all, flight& one, bool with_results);
  [[nodiscard]] bool keeps_results();
  void resume();
  void start_replays();
  void replay();

  scheduler_actor::pointer self_;
  world_ref world_;
  std::function<scheduler_peers(scheduler_actor)> make_peers_;
  scheduler_peers peers_;
  caf::typed_response_promise<run_report> promise_;

  event_queue<event> queue_;
  flight_book flights_;
  std::vector<client_record> clients_;
  memory_book memories_;
  std::uint64_t next_assignment_ = 0;
  presence presence_;
  std::unordered_map<client_id, assignment_id> at_work_; // where clients may leave at work
  virtual_time change_at_ = never;                       // of the earliest event in the queue that waits for a change
  client_set idle_;                                      // async: who could be given work now

  round_place place_;
  task_plan plan_;
  opened_round broadcast_;
  std::pair<tensors_ref, std::int64_t> foretold_; // weights, and the bytes of uploads like them
  std::vector<broadcast_ref> older_tasks_;        // the same, for clients that are still in an older task; by task
  virtual_time deadline_at_ = virtual_time::max();
  bool round_open_ = false;         // between the broadcast and close()
  bool wants_clients_ = false;      // the round is open and nobody was available yet
  std::int64_t cohort_missing_ = 0; // flights of the open round not delivered, dropped or left
  std::int64_t folded_ = 0;         // deliveries of the open round
  std::vector<client_id> dropped_out_;
  std::vector<delivery> waiting_deliveries_;
  std::int64_t waiting_bytes_ = 0;  // of them
  std::int64_t unfolded_bytes_ = 0; // handed to the server since it last said that it has folded all

  departures to_start_;
  std::int64_t result_bytes_ = 0;    // uploads of flights whose time has not come
  bool told_of_recalls_ = false;
  /// What was so when the wave that is out was begun.
  struct wave_start {
    run_report report{};
    run_digest digest{}, trace{};
    std::size_t events = 0;
    virtual_time at{};
  };
  wave_start wave_start_;
  std::int64_t wave_delivered_bytes_ = 0; // uploads delivered while it was out
  std::size_t reports_missing_ = 0;       // last ones of shards
  std::size_t starts_missing_ = 0;        // of rounds that run at once: shards that have not told what they run
  std::map<shard_id, std::vector<composition>> run_at_once_; // told by the others
  std::size_t folds_missing_ = 0;         // bundles that virtual time waits for
  std::optional<round_failure> failure_;
  std::int64_t events_handled_ = 0; // by this process
  bool stopping_ = false;
  bool over_ = false;

  next_step next_ = next_step::task;
  past_ref past_;
  std::map<assignment_id, bool> replays_; // flights that run again after a checkpoint; whether their result is wanted
  checkpoint_pace pace_;
  bool checkpoint_due_ = false;
  bool ending_ = false; // the last checkpoint of an interrupted run is being taken

  run_report report_;
  run_digest digest_, trace_;
  std::vector<event_record> events_;
};

} // namespace mneme
