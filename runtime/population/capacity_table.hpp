/// capacity_table: speed and links of individual clients, from a file.
#pragma once
#include "runtime/settings/scenario.hpp"
#include <optional>
#include <vector>
namespace mneme {

/// Values of a client in the file; nullopt: profiles and keys apply.
struct client_capacity {
  std::optional<std::size_t> profile{}; ///< Index in devices.profiles.
  std::optional<double> rows_per_second{}, uplink_mbit{}, downlink_mbit{};
};

/// Indexed by client; immutable.
using capacity_table = std::vector<client_capacity>;

/// Reads `from.devices.capacity_file`: CSV with a header that names client and any of profile, rows_per_second,
/// uplink_mbit and downlink_mbit, one line for each client that it names. Null if there is none.
[[nodiscard]] expected<std::shared_ptr<const capacity_table>> read_capacity_table(const scenario& from);

} // namespace mneme
