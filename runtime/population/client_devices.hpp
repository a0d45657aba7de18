/// client_devices: computing speed of each client, and rates of its links and the server's.
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

/// Speed of a profile for the run's net (device_speeds_of): a job takes job_start + rows / rate; the first job of a
/// client's round takes round_start more.
struct device_speed {
  double train_rows_per_second = 0.0, forward_rows_per_second = 0.0;
  virtual_duration job_start{0}, round_start{0};
};

/// Contents of device files, and profiles for the run's net; each may be null or empty.
struct device_facts {
  std::shared_ptr<const availability_trace> availability{};
  std::shared_ptr<const link_trace> links{};
  std::shared_ptr<const capacity_table> capacity{};
  std::vector<device_speed> speeds{}; ///< One for each of devices.profiles.
};

/// Work of a client's device.
struct device_work {
  std::int64_t rows = 0;     ///< Over all passes.
  bool trains = true;        ///< False: forward pass only.
  bool begins_round = false; ///< First job of its round.
};

/// Part of the population; depends on the scenario only.
class client_devices {
public:
  /// @pre `from` has passed read_scenario's checks
  client_devices(const scenario& from, device_facts facts);

  // Durations, limited so that they end before end_of_runs.
  /// rows / rows_per_second, plus the profile's fixed times per job and round.
  [[nodiscard]] virtual_duration compute_time(client_id client, const device_work& work) const;
  [[nodiscard]] virtual_duration compute_time(client_id client, std::int64_t rows) const {
    return compute_time(client, {.rows = rows});
  }
  /// latency + 8 * bytes / (mbit * 1e6) s; with bandwidth 0 only the latency. If links change over time: until this
  /// many bits have passed. A later start never ends earlier, except for jitter.
  [[nodiscard]] virtual_duration download_time(const transfer& sent) const;
  [[nodiscard]] virtual_duration upload_time(const transfer& sent) const;
  /// Likewise over the client's links with the proxy.
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
  /// True if some links carry nothing after the end of their traces.
  [[nodiscard]] bool link_traces_end() const noexcept {
    return facts_.links != nullptr && devices_.trace_end == trace_end_rule::stop;
  }
  /// Rate of a client's own link, and until when it holds; infinite for bandwidth 0.
  [[nodiscard]] std::pair<double, virtual_time> own_mbit(client_id client, link_direction direction,
                                                         virtual_time at) const;
  /// Time of a transfer that does not depend on its bytes.
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
  std::vector<double> share_ends_; // by profile: cumulative shares, up to 1
};

} // namespace mneme
