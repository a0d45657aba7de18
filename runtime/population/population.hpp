/// population: who is enrolled when, how fast each client's device and links are, and when it can be reached.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/rng.hpp"
#include "runtime/settings/scenario.hpp"
#include <optional>
#include <vector>
namespace mneme {

class availability_trace;

enum class membership : std::uint8_t { not_yet, active, left };

/// The end of time.
inline constexpr virtual_time never = virtual_time::max();
/// No run gets so far, 146 years: sums of a time before it and of one wait stay within the clock's range.
inline constexpr virtual_time end_of_runs{never.time_since_epoch() / 2};

/// A client can be reached, or not, and stays so until a time.
struct availability_window {
  bool within = true;
  virtual_time until = never;
};

/// Answers from the scenario alone, without state: a million clients cost nothing until asked about.
class population {
public:
  /// @pre `from` has passed read_scenario's checks
  /// @param trace for devices.availability = "file"
  explicit population(const scenario& from, std::shared_ptr<const availability_trace> trace = nullptr);

  [[nodiscard]] std::int64_t size() const noexcept { return count_; }
  /// Membership by the task; every client is active where enrolment is random.
  [[nodiscard]] membership member(client_id client, task_id during) const;
  /// Active clients of a task; O(1) for all and growing, O(groups) for table.
  [[nodiscard]] std::int64_t enrolled(task_id during) const;

  /// Active clients of a task, ascending.
  [[nodiscard]] std::vector<std::uint32_t> members(task_id during) const;

  // How long things take: at most until end_of_runs from the beginning.
  /// rows / rows_per_second.
  [[nodiscard]] virtual_duration compute_time(client_id client, std::int64_t rows) const;
  /// latency + 8 * bytes / (mbit * 1e6) s; a bandwidth of 0 is instantaneous but for the latency.
  [[nodiscard]] virtual_duration download_time(client_id client, std::int64_t bytes) const;
  [[nodiscard]] virtual_duration upload_time(client_id client, std::int64_t bytes) const;
  /// The same over a device's links with the proxy.
  [[nodiscard]] virtual_duration proxy_download_time(client_id client, std::int64_t bytes) const;
  [[nodiscard]] virtual_duration proxy_upload_time(client_id client, std::int64_t bytes) const;
  /// True if this assignment is never answered; keyed by client and visit.
  [[nodiscard]] bool drops_out(client_id client, task_id during, std::uint32_t visit) const;
  /// How far into its first stage a client comes that drops out at work, in [0, 1); keyed alike.
  [[nodiscard]] double dropout_point(client_id client, std::uint32_t visit) const;

  // -- over virtual time: enrolment.kind = "random", devices.availability, tasks.transition = "staggered"
  [[nodiscard]] bool has_random_enrolment() const noexcept { return enrolment_.kind == enrolment_kind::random; }
  [[nodiscard]] bool limits_availability() const noexcept {
    return devices_.availability != device_availability::always;
  }
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
  /// at + wait, or `never` beyond the clock's range.
  [[nodiscard]] static virtual_time later_by(virtual_time at, virtual_duration wait) noexcept {
    return wait > never - at ? never : at + wait;
  }

private:
  [[nodiscard]] double device(const device_value& value, purpose purpose_id, client_id client) const;
  [[nodiscard]] virtual_duration transfer_time(double mbit, std::int64_t bytes) const;
  /// Exponential; `index` tells arrivals, stays and absences apart.
  [[nodiscard]] virtual_duration drawn(virtual_duration mean, client_id client, std::uint32_t n,
                                       std::uint64_t index) const;

  std::int64_t count_ = 0;
  std::uint64_t seed_ = 0;
  enrolment_section enrolment_;
  devices_section devices_;
  bool staggered_ = false;
  virtual_duration transition_spread_{0};
  double staying_share_ = 0.0;
  std::shared_ptr<const availability_trace> trace_;
};

} // namespace mneme
