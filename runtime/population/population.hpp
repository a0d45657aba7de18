/// population: enrollment, reachability and devices of all clients.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/rng.hpp"
#include "runtime/population/client_devices.hpp"
#include "runtime/population/wait_time.hpp"
#include "runtime/settings/scenario.hpp"
#include <memory>
#include <optional>
#include <vector>
namespace mneme {

class availability_trace;

enum class membership : std::uint8_t { not_yet, active, left };

/// Reachability of a client, and the time until which it is valid.
struct availability_window {
  bool within = true;
  virtual_time until = never;
};

/// Stateless: computes all values from the scenario on demand, so a million clients cost nothing until they are
/// queried.
class population {
public:
  /// @pre `from` has passed the checks of read_scenario()
  explicit population(const scenario& from, device_inputs facts = {});

  [[nodiscard]] std::int64_t size() const noexcept { return count_; }
  /// A client's membership in a task. With random enrollment every client is active.
  [[nodiscard]] membership member(client_id client, task_id during) const;
  /// Number of clients active in a task. Takes O(1) for the kinds "all" and "growing", and O(groups) for "table".
  [[nodiscard]] std::int64_t enrolled(task_id during) const;

  /// Clients active in a task, ascending.
  [[nodiscard]] std::vector<std::uint32_t> members(task_id during) const;

  /// Speeds and links of the devices, which determine the durations of work and transfers.
  [[nodiscard]] const client_devices& devices() const noexcept { return devices_; }
  /// True if clients become permanently unreachable when their traces end.
  [[nodiscard]] bool availability_traces_end() const noexcept {
    return availability_trace_ != nullptr && trace_end_ == trace_end_rule::stop;
  }
  /// True if the client drops out of this assignment. The draw depends on client and visit.
  [[nodiscard]] bool drops_out(client_id client, task_id during, std::uint32_t visit) const;
  /// Fraction of the first stage after which a client drops out, in [0, 1). The draw depends on client and visit.
  [[nodiscard]] double dropout_point(client_id client, std::uint32_t visit) const;

  // -- over virtual time: enrolment.kind = "random", devices.availability, tasks.transition = "staggered"
  [[nodiscard]] bool has_random_enrolment() const noexcept { return enrolment_.kind == enrolment_kind::random; }
  [[nodiscard]] bool limits_availability() const noexcept { return availability_ != device_availability::always; }
  [[nodiscard]] bool has_staggered_tasks() const noexcept { return staggered_; }
  /// True if enrollment and reachability keep changing until the run ends.
  [[nodiscard]] bool changes_without_end() const noexcept;
  /// Virtual time from the start of the run until the client enrolls; exponentially distributed.
  [[nodiscard]] virtual_duration arrival_time(client_id client) const;
  /// enrolled_time() is the duration of the client's n-th stay (from 0). absence_time() is the duration of the absence
  /// after it; nullopt if the absence never ends.
  [[nodiscard]] virtual_duration enrolled_time(client_id client, std::uint32_t n) const;
  [[nodiscard]] std::optional<virtual_duration> absence_time(client_id client, std::uint32_t n) const;
  /// Virtual time from the opening of a task at the server until the client enters the task; uniform in [0, spread).
  [[nodiscard]] virtual_duration transition_delay(client_id client, task_id into) const;
  [[nodiscard]] bool has_clients_keeping_task() const noexcept { return keep_task_share_ > 0.0; }
  /// Clients of `enrolled` that keep their old task when `into` opens (tasks.keep_task_share), ascending. Of n enrolled
  /// clients, n - floor((1 - share) n) keep it. Each task has its own draw. @param enrolled ascending
  [[nodiscard]] std::vector<client_id> clients_keeping_task(task_id into, std::vector<client_id> enrolled) const;
  /// Reachability of a client at time `at`.
  [[nodiscard]] availability_window availability(client_id client, virtual_time at) const;

private:
  /// Draws an exponential duration. @param index distinguishes arrivals, stays and absences
  [[nodiscard]] virtual_duration draw_duration(virtual_duration mean, client_id client, std::uint32_t n,
                                               std::uint64_t index) const;

  std::int64_t count_ = 0;
  std::uint64_t seed_ = 0;
  enrolment_section enrolment_;
  client_devices devices_;
  double dropout_ = 0.0;
  device_availability availability_ = device_availability::always;
  virtual_duration availability_period_{0}; // for diurnal
  trace_end_rule trace_end_ = trace_end_rule::stop;
  std::shared_ptr<const availability_trace> availability_trace_; // null without a trace
  bool staggered_ = false;
  virtual_duration transition_spread_{0};
  double keep_task_share_ = 0.0;
};

} // namespace mneme
