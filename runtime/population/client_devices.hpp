/// client_devices: how fast each client's device computes, and what its links and the server's let through.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/rng.hpp"
#include "runtime/population/capacity_table.hpp"
#include "runtime/population/transfer.hpp"
#include "runtime/settings/scenario.hpp"
#include <memory>
#include <utility>
#include <vector>
namespace mneme {

class availability_trace;
class link_trace;
struct link_profile;

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

/// Answers from the scenario alone, as the population does, of which it is a part.
class client_devices {
public:
  /// @pre `from` has passed read_scenario's checks
  client_devices(const scenario& from, device_facts facts);

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
  /// What a client's own link lets through, and until when; infinite where it is instantaneous.
  [[nodiscard]] std::pair<double, virtual_time> own_mbit(client_id client, link_direction direction,
                                                         virtual_time at) const;
  /// What comes on top of a transfer, whatever its bytes.
  [[nodiscard]] virtual_duration latency(client_id client, link_direction direction, std::uint32_t visit) const;

private:
  [[nodiscard]] double device(const device_value& value, purpose purpose_id, client_id client) const;
  [[nodiscard]] std::size_t profile_of(client_id client) const;
  [[nodiscard]] const link_profile* link_of(client_id client) const;
  [[nodiscard]] double mbit_of(client_id client, link_direction direction) const;
  [[nodiscard]] virtual_duration server_transfer_time(const transfer& sent, link_direction direction) const;

  std::uint64_t seed_ = 0;
  devices_section devices_;
  device_facts facts_;
  std::vector<double> share_ends_; // of profiles: sums of shares, up to 1
};

} // namespace mneme
