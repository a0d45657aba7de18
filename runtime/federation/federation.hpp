/// federation: what a run decides, as a value: which rounds open, who works in them, what is computed, delivered,
/// folded and saved, and when. It knows virtual time, and neither actors nor threads nor a clock.
#pragma once
#include "runtime/federation/client_pool.hpp"
#include "runtime/federation/current_round.hpp"
#include "runtime/federation/delivery_buffer.hpp"
#include "runtime/federation/evicted_results.hpp"
#include "runtime/federation/federation_command.hpp"
#include "runtime/federation/federation_event.hpp"
#include "runtime/federation/in_flight_table.hpp"
#include "runtime/federation/open_wave.hpp"
#include "runtime/federation/run_log.hpp"
#include "runtime/federation/start_queue.hpp"
#include "runtime/storage/client_memory_store.hpp"
namespace mneme {

/// Inputs go in, one at a time, and leave commands behind. Each command to a shard or to the server is answered by an
/// input, in any order among shards; the run is over with the command run_report, after which inputs are ignored.
class federation {
public:
  explicit federation(federation_settings settings);
  federation(const federation&) = delete;
  federation& operator=(const federation&) = delete;

  // -- inputs: the run
  void begin();
  /// Goes on from a checkpoint. @param saved of federation and server, for loading
  void resume(archive saved);
  /// Ends the run after the event at hand.
  void stop() noexcept { stopping_ = true; }
  /// Goes on after a pause.
  void continue_events() { advance(); }
  /// Something outside has failed, and the run with it.
  void fail(std::string why) { finish(run_status::failed, std::move(why)); }
  /// A step of the server has ended in its middle: the run ends, and goes on from the last checkpoint.
  void interrupt() { finish(run_status::interrupted); }
  /// Checkpoints that are due, and not forced, may be taken now. Whoever knows the wall clock says so before an input;
  /// it holds until one is taken.
  void allow_checkpoints(bool allowed) noexcept { checkpoints_allowed_ = allowed; }

  // -- inputs: a shard's report
  void take(wave_report& report);

  // -- inputs: the server's answers
  void take(const task_plan& plan);
  void take(opened_round& made);
  void take(const closed_round& step);
  void take(const evaluated& sums);
  void take(saved_state& state);
  void restored(); ///< It goes on from a checkpoint.
  void folded();   ///< It has folded uploads of which it was to tell.

  // -- inputs: the proxy's answers
  void take(const advised& step);
  void take(saved_proxy& state);
  void take(restored_proxy& state);

  // -- inputs: the recorder's answer
  void kept(); ///< A checkpoint is on the disk, or could not be written.

  // -- output
  /// Swaps the commands that wait for those in `taken`, which are forgotten.
  void take_commands(std::vector<federation_command>& taken);

private:
  /// What is done next where nothing is under way: the places at which a checkpoint may be taken.
  enum class next_step : std::uint8_t { task, round, event };

  // federation.cpp: virtual time
  void advance();
  [[nodiscard]] bool may_go_on_during_wave();
  [[nodiscard]] bool needs_answer(const federation_event& next);
  [[nodiscard]] std::int64_t fruitless_events_max() const;
  [[nodiscard]] bool is_dead_end() const;
  [[nodiscard]] std::string dead_end() const; // why, in words
  void handle(const federation_event& now);
  void finish(run_status status, std::string error = {});
  void command(federation_command wanted);
  [[nodiscard]] virtual_time now() const { return failed_at_ ? *failed_at_ : queue_.now(); }
  void record(const char* actor, const char* event, std::optional<client_id> client, std::int64_t bytes = 0);
  void flush_events();

  // federation_waves.cpp: real work that virtual time waits for
  void begin_wave(assignment_id top);
  void start_waiting();
  [[nodiscard]] bool may_run_at_once() const;
  void release_for(assignment_id top);
  void send(std::vector<shard_batches> batches);
  void learn_durations(const wave_report& report);
  void learn_results(std::vector<finished_round>& finished);
  void keep_failure(round_failure why);
  void fail_known_size(const assignment_in_flight& owner, job_id at);
  void end_failed(const round_failure& why);
  void end_wave();
  void recompute(assignment_id top);
  void run_again();
  void catch_up();

  // federation_rounds.cpp: tasks and rounds
  void begin_task(task_id task);
  void warn_of_own_rounds(const task_plan& plan);
  void begin_round();
  void try_dispatch();
  void fill_places();
  void dispatch(client_id client);
  void observe(client_id client);
  [[nodiscard]] virtual_duration download_time(client_id client, std::int64_t bytes) const;
  void start_work(assignment_in_flight&& added);
  void queue_start(const assignment_in_flight& added);
  void deadline_passed();
  void close();
  void round_closed();
  [[nodiscard]] std::vector<class_range> masks_of_evaluation() const;
  void next_round();

  // federation_clients.cpp: clients at work, and clients that come, go, or change task by themselves
  void expect(assignment_in_flight& owner, federation_event::kind next, virtual_time at);
  void stage_over(assignment_in_flight& owner);
  void send_off(assignment_in_flight& owner);
  [[nodiscard]] virtual_duration upload_time(assignment_in_flight& owner) const;
  void begin_to_drop_out(assignment_in_flight& owner);
  void drop_out(const assignment_in_flight& owner);
  void deliver(assignment_in_flight& owner);
  void deliver_to_proxy(assignment_in_flight& owner);
  void end_look(assignment_in_flight& owner);
  void keep_result(assignment_in_flight& owner);
  void end_visit_of(const assignment_in_flight& owner);
  [[nodiscard]] delivery delivery_of(assignment_in_flight& owner) const;
  void hand_over_deliveries();
  void abandon_assignments(const std::vector<assignment_id>& ids, const char* why);
  void expect_churn();
  void keep_up();
  void churn();
  void take(const availability_change& change);
  void leave(client_id client);
  [[nodiscard]] memory_ref remembered(client_id client);
  void remember(client_id client, memory_ref memory);

  // federation_checkpoints.cpp: where a run can go on
  void go_on();
  void checkpoint_then_go_on(next_step next);
  void stop_at(next_step next);
  void take_checkpoint(bool wait_until_kept);
  void after_checkpoint();
  void persist(archive& state);
  void persist_memories(archive& state);
  void persist_assignments(archive& state);
  void persist_assignment(archive& state, assignment_in_flight& saved, bool with_results);
  void expect_possible(const assignment_in_flight& saved, assignment_phase phase,
                       const std::vector<virtual_duration>& stages, std::uint64_t reached) const;
  void expect_sound() const;
  [[nodiscard]] bool stores_results();

  const federation_settings settings_;
  std::vector<federation_command> commands_;

  event_queue<federation_event> queue_;
  virtual_time churn_at_ = never; // of the earliest event in the queue that waits for churn
  std::int64_t events_handled_ = 0;
  std::int64_t fruitless_events_ = 0; // since an upload was delivered or a round closed
  client_pool pool_;
  client_memory_store memories_;
  current_round round_;
  advised advice_; // what the proxy has said last
  std::uint64_t next_assignment_ = 0;
  std::uint64_t next_sequence_ = 0; // of the events of assignments
  in_flight_table in_flight_;
  start_queue start_queue_;
  delivery_buffer deliveries_;
  evicted_results results_;
  bool told_of_eviction_ = false;
  std::vector<assignment_id> repeated_; // that run again, ascending: after a checkpoint, or because they were evicted
  open_wave wave_;
  std::map<assignment_id, round_failure> failures_; // of rounds whose answers virtual time does not need yet
  run_log log_;

  next_step next_ = next_step::task;
  bool checkpoint_due_ = false;
  bool checkpoints_allowed_ = true;
  bool waits_until_kept_ = false; // the run goes on when the checkpoint is on the disk
  std::size_t keeps_missing_ = 0; // checkpoints that are being written
  bool stopping_ = false;
  bool ending_ = false; // the last checkpoint of an interrupted run is being taken
  bool over_ = false;
  std::optional<virtual_time> failed_at_; // where virtual time stood when the wave was begun that failed
};

} // namespace mneme
