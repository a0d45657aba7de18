/// dispatcher: draws clients and dispatches work to them. It also applies changes of enrollment, availability and task
/// at their virtual times.
#pragma once
#include "runtime/federation/client_pool.hpp"
#include "runtime/federation/server_links.hpp"
#include "runtime/federation/wave_scheduler.hpp"
#include "runtime/storage/client_memory_store.hpp"
namespace mneme {

/// Throws if the file that holds client memories beyond the RAM limit cannot be written or read.
class dispatcher {
public:
  /// All arguments must outlive this object.
  dispatcher(const federation_settings& settings, run_clock& clock, current_round& round, in_flight_table& in_flight,
             server_links& links, wave_scheduler& waves, run_output& out);

  [[nodiscard]] const client_pool& pool() const noexcept { return pool_; }

  // -- tasks
  /// Opens a task. Clients that are enrolled only until this task abandon their work.
  void open_task(task_id task);
  void plan_task(const task_plan& plan) { pool_.plan_task(plan); }

  // -- start of work
  /// Dispatches the cohort. Returns true if no client is available; the round then waits until a client becomes
  /// available.
  [[nodiscard]] bool dispatch_cohort();
  /// Asynchronous runs: dispatches idle clients until the concurrency limit is reached or no client is idle.
  void dispatch_idle();
  /// True if the round has no client, no client is busy, and none can become available any more.
  [[nodiscard]] bool cannot_progress() const;
  /// Queues the assignment for the next wave. Its inputs are fixed at dispatch: a busy client's memory and number of
  /// visits do not change.
  void start(const assignment_in_flight& owner);
  /// Registers an assignment that was loaded from a checkpoint.
  void restore_assignment(assignment_in_flight& owner) {
    pool_.assigned(owner.client, owner.id);
    owner.visit = pool_.visit_of(owner.client);
  }

  // -- end of work
  /// Commits the client's new memory and marks the client as idle.
  void end(assignment_in_flight& owner);
  /// Cancels assignments. @param ids ascending @param reason name of the event in events.csv
  void abandon(const std::vector<assignment_id>& ids, const char* reason);
  /// Cancels or keeps the late assignments, depending on `rounds.late`.
  void deadline_passed();
  /// Marks clients that dropped out of the open round as idle.
  void free_dropped_out();

  // -- churn
  /// Applies all changes of enrollment, availability and task that are due.
  void apply_churn();

  void persist(archive& state);
  /// True if the loaded state is valid for this population and its tasks.
  [[nodiscard]] bool is_valid() const { return pool_.is_valid(); }
  /// The next unused assignment id.
  [[nodiscard]] assignment_id next_assignment() const noexcept { return {next_assignment_}; }

private:
  void begin_work(client_id client, activity_id kind);
  [[nodiscard]] virtual_duration download_time(const transfer& sent) const;
  void start_work(assignment_in_flight&& added, std::optional<std::int64_t> shared_bytes);
  void apply(const availability_change& change);
  void leave(client_id client);
  void persist_memories(archive& state);

  const federation_settings& settings_;
  run_clock& clock_;
  current_round& round_;
  in_flight_table& in_flight_;
  server_links& links_;
  wave_scheduler& waves_;
  run_output& out_;
  client_pool pool_;
  client_memory_store memories_;
  std::uint64_t next_assignment_ = 0;
};

} // namespace mneme
