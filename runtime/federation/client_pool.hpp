/// client_pool: which clients may be given work, who is at work, and who is drawn.
#pragma once
#include "runtime/federation/activities.hpp"
#include "runtime/federation/availability.hpp"
#include "runtime/federation/federation_settings.hpp"
#include "runtime/population/client_set.hpp"
#include <unordered_map>
namespace mneme {

class client_pool {
public:
  /// @param settings outlives the pool
  explicit client_pool(const federation_settings& settings);

  // -- time and tasks
  /// The server opens a task. @pre moved to `now`
  void open_task(task_id task, virtual_time now) {
    opened_ = task;
    availability_.open_task(task, now);
  }
  /// The method has said who takes part in the open task.
  void plan_task(const task_plan& plan);
  /// Changes up to and including `now`, by time, then client. They are made when this returns.
  [[nodiscard]] std::vector<availability_change> move_to(virtual_time now) { return availability_.move_to(now); }
  /// A change has been handled: the client may have become idle, or may be so no more.
  void changed(client_id client) { list(client); }
  [[nodiscard]] std::optional<virtual_time> next_change() const { return availability_.next_change(); }
  [[nodiscard]] task_id task_of(client_id client) const { return availability_.task_of(client); }
  [[nodiscard]] membership member(client_id client) const { return availability_.member(client); }
  [[nodiscard]] std::int64_t enrolled() const { return availability_.enrolled(); }
  /// Waiting can bring a client to a run in which nobody is at work.
  [[nodiscard]] bool clients_may_come() const;

  // -- work
  /// It is enrolled, within reach, not at work, and has rows in its task unless the method waives that.
  [[nodiscard]] bool is_available(client_id client) const;
  /// The clients of a round of the open task, ascending.
  [[nodiscard]] std::vector<client_id> draw_cohort(round_id round) const;
  /// The clients outside the cohort that have `kind` in a round, ascending, once the cohort is at work.
  [[nodiscard]] std::vector<client_id> draw_beside(const activity& kind, round_id round) const;
  /// Clients outside the cohort may have something to do in the open task.
  [[nodiscard]] bool works_beside() const noexcept;
  /// At most `most` of the available clients, uniform without replacement, ascending. @param draw names the stream
  [[nodiscard]] std::vector<client_id> draw_idle(std::int64_t most, std::uint64_t draw);
  /// The client is at work from now on. Returns how many assignments it had before.
  std::uint32_t begin_visit(client_id client);
  /// What `client` works on; asked for when it leaves.
  void assigned(client_id client, assignment_id id);
  /// It has nothing to do any more.
  void end_visit(client_id client);
  /// How many assignments the client had before the present one.
  [[nodiscard]] std::uint32_t visit_of(client_id client) const { return records_[client.value].visits - 1; }
  /// Null where no client leaves at work, or the client is not at work.
  [[nodiscard]] std::optional<assignment_id> assignment_of(client_id client) const;

  void persist(archive& state);
  /// What was loaded is of these clients and tasks.
  [[nodiscard]] bool is_sound() const;

private:
  /// All that an idle client costs, besides its rows and what it remembers.
  struct client_record {
    std::uint32_t visits : 31 = 0; // assignments so far
    std::uint32_t busy : 1 = 0;    // at work, or dropped out of the open round
  };
  static_assert(sizeof(client_record) == 4);
  [[nodiscard]] bool has_rows(client_id client) const;
  void list(client_id client);

  const federation_settings* settings_;
  availability availability_;
  std::vector<client_record> records_;
  std::unordered_map<client_id, assignment_id> assignments_; // only where clients may leave at work
  bool may_leave_at_work_ = false;
  client_set idle_; // async: who is available
  task_id opened_{};
  task_plan plan_; // of the open task
};

} // namespace mneme
