/// client_devices: computing speed of each client, and rates of client and server links.
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

/// Speed of a device profile for the run's net (device_speeds_of). A job takes job_start + rows / rate; the first job
/// of a client's round takes round_start in addition.
struct device_speed {
  double train_rows_per_second = 0.0, forward_rows_per_second = 0.0;
  virtual_duration job_start{0}, round_start{0};
};

/// Contents of the device files, and the speeds of the device profiles for the run's net. All members may be null or
/// empty.
struct device_inputs {
  std::shared_ptr<const availability_trace> availability{};
  std::shared_ptr<const link_trace> links{};
  std::shared_ptr<const capacity_table> capacity{};
  std::vector<device_speed> speeds{}; ///< Speed of each entry of devices.profiles.
};

/// Work that a client's device has to do.
struct device_work {
  std::int64_t rows = 0;     ///< Rows to process, over all passes.
  bool trains = true;        ///< False: forward pass only.
  bool begins_round = false; ///< True for the first job of a round.
};

/// The devices of all clients. They depend on the scenario only.
class client_devices {
public:
  /// @pre `from` has passed the checks of read_scenario()
  client_devices(const scenario& from, device_inputs facts);

  /// Duration of a job: rows / rows_per_second, plus fixed times of the profile per job and per round. All durations
  /// are limited so that they end before end_of_runs.
  [[nodiscard]] virtual_duration compute_time(client_id client, const device_work& work) const;
  [[nodiscard]] virtual_duration compute_time(client_id client, std::int64_t rows) const {
    return compute_time(client, {.rows = rows});
  }
  /// Duration of a transfer: latency + 8 * bytes / (mbit * 1e6) seconds, or only the latency if the bandwidth is 0. A
  /// link may change its rate during the transfer. Apart from jitter, a transfer that starts later never ends earlier.
  [[nodiscard]] virtual_duration download_time(const transfer& sent) const;
  [[nodiscard]] virtual_duration upload_time(const transfer& sent) const;
  /// Durations of transfers over the client's links with the proxy; see download_time().
  [[nodiscard]] virtual_duration proxy_download_time(const transfer& sent) const;
  [[nodiscard]] virtual_duration proxy_upload_time(const transfer& sent) const;

  // -- links shared at the server: devices.server_uplink_mbit, devices.server_downlink_mbit
  /// Total rate of the server's link in Mbit/s; 0: unlimited.
  [[nodiscard]] double server_mbit(link_direction direction) const noexcept {
    return direction == link_direction::up ? devices_.server_uplink_mbit : devices_.server_downlink_mbit;
  }
  /// True if transfers share a link of the server.
  [[nodiscard]] bool shares_links() const noexcept {
    return devices_.server_uplink_mbit > 0.0 || devices_.server_downlink_mbit > 0.0;
  }
  /// True if some links have rate 0 after the end of their traces.
  [[nodiscard]] bool link_traces_end() const noexcept {
    return facts_.links != nullptr && devices_.trace_end == trace_end_rule::stop;
  }
  /// Rate in Mbit/s of a client's own link, and the time until which it is valid. Infinite rate for bandwidth 0.
  [[nodiscard]] std::pair<double, virtual_time> client_mbit(client_id client, link_direction direction,
                                                            virtual_time at) const;
  /// The part of a transfer's duration that does not depend on its bytes.
  [[nodiscard]] virtual_duration latency(client_id client, link_direction direction, std::uint32_t visit) const;

private:
  [[nodiscard]] double device(const device_value& value, purpose purpose_id, client_id client) const;
  [[nodiscard]] std::size_t profile_of(client_id client) const;
  [[nodiscard]] const link_profile* link_of(client_id client) const;
  [[nodiscard]] double mbit_of(client_id client, link_direction direction) const;
  [[nodiscard]] virtual_duration server_transfer_time(const transfer& sent, link_direction direction) const;

  std::uint64_t seed_ = 0;
  devices_section devices_;
  device_inputs facts_;
  bool masks_uploads_ = false;     // true: uploads need the messages of secure aggregation
  std::vector<double> share_ends_; // cumulative shares of the profiles, up to 1
};

} // namespace mneme
