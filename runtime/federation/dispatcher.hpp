/// dispatcher: who works on what: clients are drawn and given work, and come, go and change task by themselves, at
/// times that follow from keys alone.
#pragma once
#include "runtime/federation/client_pool.hpp"
#include "runtime/federation/computing_ahead.hpp"
#include "runtime/federation/server_links.hpp"
#include "runtime/storage/client_memory_store.hpp"
namespace mneme {

/// A file that holds memories for which there is no room can fail: what it cannot do is thrown.
class dispatcher {
public:
  /// All outlive this.
  dispatcher(const federation_settings& settings, run_clock& clock, current_round& round, in_flight_table& in_flight,
             server_links& links, computing_ahead& ahead, run_output& out);

  [[nodiscard]] const client_pool& pool() const noexcept { return pool_; }

  // -- tasks
  /// Enrolment may end with a task: whoever is no member any more leaves its work behind.
  void open_task(task_id task);
  void plan_task(const task_plan& plan) { pool_.plan_task(plan); }

  // -- work begins
  /// Gives the cohort work. With nobody available the round waits for clients at work to come back, or for others to
  /// come. Returns whether it waits for anybody.
  [[nodiscard]] bool give_cohort_work();
  /// Gives work to as many idle clients as there are places. What is left free is filled when a client becomes idle.
  void fill_places();
  /// The round has no client, nobody is at work, and nobody can come.
  [[nodiscard]] bool waits_in_vain() const;
  /// The assignment is computed with the next wave. What it is given holds from the dispatch to the delivery: nothing
  /// changes a busy client's memory or visits.
  void start(const assignment_in_flight& owner);
  /// It was loaded from a checkpoint.
  void took_up(assignment_in_flight& owner) {
    pool_.assigned(owner.client, owner.id);
    owner.visit = pool_.visit_of(owner.client);
  }

  // -- work ends
  /// What the client has made of its memory holds, and it has nothing to do.
  void end(assignment_in_flight& owner);
  /// @param ids ascending
  void abandon(const std::vector<assignment_id>& ids, const char* why);
  /// What is late leaves its work behind, or is kept.
  void deadline_passed();
  /// Clients that dropped out of the open round are free again.
  void free_dropped_out();

  // -- churn
  /// Makes the changes that are due.
  void keep_up();

  void persist(archive& state);
  /// What was loaded is of these clients and tasks.
  [[nodiscard]] bool is_sound() const { return pool_.is_sound(); }
  /// Ids below it have been handed out.
  [[nodiscard]] assignment_id next_assignment() const noexcept { return {next_assignment_}; }

private:
  void begin_work(client_id client, activity_id kind);
  [[nodiscard]] virtual_duration download_time(const transfer& sent) const;
  void start_work(assignment_in_flight&& added, std::optional<std::int64_t> shared_bytes);
  void take(const availability_change& change);
  void leave(client_id client);
  void persist_memories(archive& state);

  const federation_settings& settings_;
  run_clock& clock_;
  current_round& round_;
  in_flight_table& in_flight_;
  server_links& links_;
  computing_ahead& ahead_;
  run_output& out_;
  client_pool pool_;
  client_memory_store memories_;
  std::uint64_t next_assignment_ = 0;
};

} // namespace mneme
