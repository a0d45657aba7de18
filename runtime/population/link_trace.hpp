/// link_trace: time-varying rates of client links in virtual time, read from a file.
#pragma once
#include "runtime/population/trace_periods.hpp"
#include "runtime/population/transfer.hpp"
#include <optional>
namespace mneme {

/// Rates of a client's links in Mbit/s from `from` (included) to `to` (excluded). With rate 0 nothing is transferred.
struct link_span {
  client_id client{};
  virtual_time from{}, to{};
  double uplink_mbit = 0.0, downlink_mbit = 0.0;
};

/// The rate of a link, and the time until which it is valid.
struct link_rate {
  double mbit = 0.0;
  virtual_time until{};
};

/// Immutable; takes 40 bytes per span. Outside of a client's spans its link has rate 0.
class link_trace {
public:
  /// @pre spans of one client do not overlap
  link_trace(std::vector<link_span> spans, std::int64_t clients, trace_periods periods);

  /// True if the file contains the client. The links of other clients are defined by keys and profiles.
  [[nodiscard]] bool names(client_id client) const { return first_[client.value] < first_[client.value + 1]; }
  /// The client's rate at a time. @pre names(client)
  [[nodiscard]] link_rate rate(client_id client, link_direction direction, virtual_time at) const;
  /// Duration of a transfer of `bytes` that starts at `at`. Returns nullopt if the trace ends before the transfer. @pre
  /// names(client)
  [[nodiscard]] std::optional<virtual_duration> transfer_duration(client_id client, link_direction direction,
                                                                  std::int64_t bytes, virtual_time at) const;

private:
  [[nodiscard]] link_rate rate_within(client_id client, link_direction direction, virtual_duration into) const;
  [[nodiscard]] double bits_of_period(client_id client, link_direction direction) const;

  std::vector<link_span> spans_;     // sorted by client, then time
  std::vector<std::uint32_t> first_; // [clients + 1] index of the first span of each client
  trace_periods periods_;
};

/// Reads `from.devices.link_file`, a CSV file with the columns client, from, to, uplink_mbit and downlink_mbit, and
/// optionally period. Returns null if the scenario names no file.
[[nodiscard]] expected<std::shared_ptr<const link_trace>> read_link_trace(const scenario& from);

} // namespace mneme
