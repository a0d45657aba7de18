/// population: who is enrolled when, how fast each client's device and links are, and when it can be reached.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/rng.hpp"
#include "runtime/population/capacity_table.hpp"
#include "runtime/population/transfer.hpp"
#include "runtime/settings/scenario.hpp"
#include <optional>
#include <vector>
namespace mneme {

class availability_trace;
class link_trace;
struct link_profile;

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

/// What a profile says of the run's net (device_speeds_of): a job takes job_start + rows / rate, the first of a
/// client's round round_start more.
struct device_speed {
  double train_rows_per_second = 0.0, forward_rows_per_second = 0.0;
  virtual_duration job_start{0}, round_start{0};
};

/// What files say of devices, and profiles of the run's net; each may be null or empty.
struct device_facts {
  std::shared_ptr<const availability_trace> availability{};
  std::shared_ptr<const link_trace> links{};
  std::shared_ptr<const capacity_table> capacity{};
  std::vector<device_speed> speeds{}; ///< One for each of devices.profiles.
};

/// What a client's device computes.
struct device_work {
  std::int64_t rows = 0;     ///< Passes included.
  bool trains = true;        ///< False: forward alone.
  bool begins_round = false; ///< It is the first of its round.
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

  // How long things take: at most until end_of_runs from the beginning.
  /// rows / rows_per_second; of a profile, what it adds to a job and to a round.
  [[nodiscard]] virtual_duration compute_time(client_id client, const device_work& work) const;
  [[nodiscard]] virtual_duration compute_time(client_id client, std::int64_t rows) const {
    return compute_time(client, {.rows = rows});
  }
  /// latency + 8 * bytes / (mbit * 1e6) s; a bandwidth of 0 is instantaneous but for the latency. Where links change
  /// over time, until so many bits have passed; who begins later never ends earlier but for jitter.
  [[nodiscard]] virtual_duration download_time(const transfer& sent) const;
  [[nodiscard]] virtual_duration upload_time(const transfer& sent) const;
  /// The same over a device's links with the proxy.
  [[nodiscard]] virtual_duration proxy_download_time(const transfer& sent) const;
  [[nodiscard]] virtual_duration proxy_upload_time(const transfer& sent) const;

  // -- links that are shared at the server: devices.server_uplink_mbit, devices.server_downlink_mbit
  /// 0: no limit.
  [[nodiscard]] double server_mbit(link_direction direction) const noexcept {
    return direction == link_direction::up ? devices_.server_uplink_mbit : devices_.server_downlink_mbit;
  }
  [[nodiscard]] bool shares_links() const noexcept {
    return devices_.server_uplink_mbit > 0.0 || devices_.server_downlink_mbit > 0.0;
  }
  /// Nothing moves over some links any more once their traces have ended.
  [[nodiscard]] bool link_traces_end() const noexcept {
    return facts_.links != nullptr && devices_.trace_end == trace_end_rule::stop;
  }
  /// Clients are never reached again once their traces have ended.
  [[nodiscard]] bool availability_traces_end() const noexcept {
    return facts_.availability != nullptr && devices_.trace_end == trace_end_rule::stop;
  }
  /// What a client's own link lets through, and until when; infinite where it is instantaneous.
  [[nodiscard]] std::pair<double, virtual_time> own_mbit(client_id client, link_direction direction,
                                                         virtual_time at) const;
  /// What comes on top of a transfer, whatever its bytes.
  [[nodiscard]] virtual_duration latency(client_id client, link_direction direction, std::uint32_t visit) const;
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
  [[nodiscard]] std::vector<double> drawn_for_all(const device_value& value, purpose purpose_id) const;
  [[nodiscard]] std::size_t profile_of(client_id client) const;
  [[nodiscard]] const link_profile* link_of(client_id client) const;
  [[nodiscard]] double mbit_of(client_id client, link_direction direction) const;
  [[nodiscard]] virtual_duration transfer_time(double mbit, std::int64_t bytes, virtual_duration latency) const;
  [[nodiscard]] virtual_duration server_transfer_time(const transfer& sent, link_direction direction) const;
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
  device_facts facts_;
  std::vector<double> share_ends_; // of profiles: sums of shares, up to 1
};

} // namespace mneme
