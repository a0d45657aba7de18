/// capacity_table: speed and links of single clients, from a file.
#pragma once
#include "runtime/settings/scenario.hpp"
#include <optional>
#include <vector>
namespace mneme {

/// What the file says of a client; none: profiles and keys do.
struct client_capacity {
  std::optional<std::size_t> profile{}; ///< Its place in devices.profiles.
  std::optional<double> rows_per_second{}, uplink_mbit{}, downlink_mbit{};
};

/// By client; const once made.
using capacity_table = std::vector<client_capacity>;

/// Reads `from.devices.capacity_file`: CSV with a header that names client and any of profile, rows_per_second,
/// uplink_mbit and downlink_mbit, one line for each client that it names. Null if there is none.
[[nodiscard]] expected<std::shared_ptr<const capacity_table>> read_capacity_table(const scenario& from);

} // namespace mneme
