/// link_trace: links of clients that change over virtual time, from a file.
#pragma once
#include "runtime/population/trace_periods.hpp"
#include "runtime/population/transfer.hpp"
#include <optional>
namespace mneme {

/// Rates of a client's links in Mbit/s from `from` (included) to `to` (excluded); 0: the link carries nothing.
struct link_span {
  client_id client{};
  virtual_time from{}, to{};
  double uplink_mbit = 0.0, downlink_mbit = 0.0;
};

/// Rate of a link until it changes.
struct link_rate {
  double mbit = 0.0;
  virtual_time until{};
};

/// Immutable. 40 bytes per span. Between and after its spans a client's link carries nothing.
class link_trace {
public:
  /// @pre spans of one client do not overlap
  link_trace(std::vector<link_span> spans, std::int64_t clients, trace_periods periods);

  /// False if the file does not contain the client, whose links are then given by keys and profiles.
  [[nodiscard]] bool names(client_id client) const { return first_[client.value] < first_[client.value + 1]; }
  /// @pre names(client)
  [[nodiscard]] link_rate rate(client_id client, link_direction direction, virtual_time at) const;
  /// Time from `at` until `bytes` have passed; nullopt if the trace ends before. @pre names(client)
  [[nodiscard]] std::optional<virtual_duration> passing_time(client_id client, link_direction direction,
                                                             std::int64_t bytes, virtual_time at) const;

private:
  [[nodiscard]] link_rate rate_within(client_id client, link_direction direction, virtual_duration into) const;
  [[nodiscard]] double bits_of_period(client_id client, link_direction direction) const;

  std::vector<link_span> spans_;     // by client, then time
  std::vector<std::uint32_t> first_; // [clients + 1] index of each client's first span
  trace_periods periods_;
};

/// Reads `from.devices.link_file`: CSV with a header that names the columns client, from, to, uplink_mbit and
/// downlink_mbit, and may name period. Null if there is none.
[[nodiscard]] expected<std::shared_ptr<const link_trace>> read_link_trace(const scenario& from);

} // namespace mneme
