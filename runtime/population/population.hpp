/// population: who is enrolled when, when each client can be reached, and what devices there are.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/rng.hpp"
#include "runtime/population/client_devices.hpp"
#include "runtime/population/longest_wait.hpp"
#include "runtime/settings/scenario.hpp"
#include <memory>
#include <optional>
#include <vector>
namespace mneme {

class availability_trace;

enum class membership : std::uint8_t { not_yet, active, left };

/// A client can be reached, or not, and stays so until a time.
struct availability_window {
  bool within = true;
  virtual_time until = never;
};

/// Answers from the scenario alone, without state: a million clients cost nothing until asked about.
class population {
public:
  /// @pre `from` has passed read_scenario's checks
  explicit population(const scenario& from, device_facts facts = {});

  [[nodiscard]] std::int64_t size() const noexcept { return count_; }
  /// Membership by the task; every client is active where enrolment is random.
  [[nodiscard]] membership member(client_id client, task_id during) const;
  /// Active clients of a task; O(1) for all and growing, O(groups) for table.
  [[nodiscard]] std::int64_t enrolled(task_id during) const;

  /// Active clients of a task, ascending.
  [[nodiscard]] std::vector<std::uint32_t> members(task_id during) const;

  /// How long what its clients do takes.
  [[nodiscard]] const client_devices& devices() const noexcept { return devices_; }
  /// Clients are never reached again once their traces have ended.
  [[nodiscard]] bool availability_traces_end() const noexcept {
    return availability_trace_ != nullptr && trace_end_ == trace_end_rule::stop;
  }
  /// True if this assignment is never answered; keyed by client and visit.
  [[nodiscard]] bool drops_out(client_id client, task_id during, std::uint32_t visit) const;
  /// How far into its first stage a client comes that drops out at work, in [0, 1); keyed alike.
  [[nodiscard]] double dropout_point(client_id client, std::uint32_t visit) const;

  // -- over virtual time: enrolment.kind = "random", devices.availability, tasks.transition = "staggered"
  [[nodiscard]] bool has_random_enrolment() const noexcept { return enrolment_.kind == enrolment_kind::random; }
  [[nodiscard]] bool limits_availability() const noexcept { return availability_ != device_availability::always; }
  [[nodiscard]] bool has_staggered_tasks() const noexcept { return staggered_; }
  /// True if clients come back, or can be reached again, without end.
  [[nodiscard]] bool changes_without_end() const noexcept;
  /// From the run's beginning until a client enrols; exponential.
  [[nodiscard]] virtual_duration arrival_time(client_id client) const;
  /// How long it stays the n-th time, from 0, and how long it is away after that; null: for ever.
  [[nodiscard]] virtual_duration enrolled_time(client_id client, std::uint32_t n) const;
  [[nodiscard]] std::optional<virtual_duration> absence_time(client_id client, std::uint32_t n) const;
  /// From the opening of a task by the server until a client enters it; uniform in [0, spread).
  [[nodiscard]] virtual_duration transition_delay(client_id client, task_id into) const;
  [[nodiscard]] bool has_staying_clients() const noexcept { return staying_share_ > 0.0; }
  /// Those of `enrolled` who keep their old task when `into` begins (tasks.staying_share), ascending: n less the whole
  /// part of (1 - share) n of them, drawn for each task. @param enrolled ascending
  [[nodiscard]] std::vector<client_id> staying(task_id into, std::vector<client_id> enrolled) const;
  /// Tells if a client can be reached from `at` on.
  [[nodiscard]] availability_window availability(client_id client, virtual_time at) const;

private:
  /// Exponential; `index` tells arrivals, stays and absences apart.
  [[nodiscard]] virtual_duration drawn(virtual_duration mean, client_id client, std::uint32_t n,
                                       std::uint64_t index) const;

  std::int64_t count_ = 0;
  std::uint64_t seed_ = 0;
  enrolment_section enrolment_;
  client_devices devices_;
  double dropout_ = 0.0;
  device_availability availability_ = device_availability::always;
  virtual_duration availability_period_{0}; // diurnal
  trace_end_rule trace_end_ = trace_end_rule::stop;
  std::shared_ptr<const availability_trace> availability_trace_; // null: there is none
  bool staggered_ = false;
  virtual_duration transition_spread_{0};
  double staying_share_ = 0.0;
};

} // namespace mneme
