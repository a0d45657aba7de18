/// client_pool: tracks which clients are available or busy, and draws cohorts.
#pragma once
#include "runtime/federation/activities.hpp"
#include "runtime/federation/availability.hpp"
#include "runtime/federation/federation_settings.hpp"
#include "runtime/population/client_set.hpp"
#include <unordered_map>
namespace mneme {

class client_pool {
public:
  /// @param settings must outlive the pool
  explicit client_pool(const federation_settings& settings);

  // -- time and tasks
  /// Opens a task at the server. @pre move_to(now) was called
  void open_task(task_id task, virtual_time now) {
    opened_ = task;
    availability_.open_task(task, now);
  }
  /// Sets the method's plan for the open task.
  void plan_task(const task_plan& plan);
  /// Applies and returns the changes up to and including `now`, ordered by time, then client.
  [[nodiscard]] std::vector<availability_change> move_to(virtual_time now) { return availability_.move_to(now); }
  /// Updates the set of idle clients after a change of `client`.
  void changed(client_id client) { list(client); }
  [[nodiscard]] std::optional<virtual_time> next_change() const { return availability_.next_change(); }
  [[nodiscard]] task_id task_of(client_id client) const { return availability_.task_of(client); }
  [[nodiscard]] membership member(client_id client) const { return availability_.member(client); }
  [[nodiscard]] std::int64_t enrolled() const { return availability_.enrolled(); }
  /// True if a client can become available even though no client is busy.
  [[nodiscard]] bool clients_may_come() const;

  // -- work
  /// True if the client is enrolled, reachable and idle. It must also have rows in its task, unless the method permits
  /// clients without rows.
  [[nodiscard]] bool is_available(client_id client) const;
  /// Draws the cohort of a round of the open task. Returns ascending ids.
  [[nodiscard]] std::vector<client_id> draw_cohort(round_id round) const;
  /// Draws the clients outside the cohort that do `kind` in a round. Returns ascending ids. @pre the cohort is
  /// dispatched
  [[nodiscard]] std::vector<client_id> draw_observers(const activity& kind, round_id round) const;
  /// True if the open task has work for clients outside the cohort.
  [[nodiscard]] bool has_observers() const noexcept;
  /// Draws up to `most` available clients, uniformly without replacement. Returns ascending ids.
  /// @param draw index of the random stream
  [[nodiscard]] std::vector<client_id> draw_idle(std::int64_t most, std::uint64_t draw);
  /// Marks the client as busy. Returns the number of its earlier assignments.
  std::uint32_t begin_visit(client_id client);
  /// Records the assignment of a busy client, so that the assignment can be canceled if the client leaves.
  void assigned(client_id client, assignment_id id);
  /// Marks the client as idle.
  void end_visit(client_id client);
  /// Number of assignments of the client before the current one.
  [[nodiscard]] std::uint32_t visit_of(client_id client) const { return records_[client.value].visits - 1; }
  /// Assignment of a busy client. Returns nullopt if the client is idle, or if clients cannot leave while busy.
  [[nodiscard]] std::optional<assignment_id> assignment_of(client_id client) const;

  void persist(archive& state);
  /// True if the loaded state is valid for this population and its tasks.
  [[nodiscard]] bool is_valid() const;

private:
  /// State of a client in the pool. It contains neither the client's rows nor its method's memory.
  struct client_record {
    std::uint32_t visits : 31 = 0; // number of the client's assignments so far
    std::uint32_t busy : 1 = 0;    // the client is busy, or has dropped out of the open round
  };
  static_assert(sizeof(client_record) == 4);
  [[nodiscard]] bool has_rows(client_id client) const;
  void list(client_id client);

  const federation_settings* settings_;
  availability availability_;
  std::vector<client_record> records_;
  std::unordered_map<client_id, assignment_id> assignments_; // used only if clients may leave while busy
  bool may_leave_at_work_ = false;
  client_set idle_; // available clients; maintained only in asynchronous runs
  task_id opened_{};
  task_plan plan_; // the method's plan for the open task
};

} // namespace mneme
