/// capacity_table: computing speed and links of individual clients, read from a file.
#pragma once
#include "runtime/settings/scenario.hpp"
#include <optional>
#include <vector>
namespace mneme {

/// A client's values in the file. Where a value is nullopt, profiles and keys apply.
struct client_capacity {
  std::optional<std::size_t> profile{}; ///< Index in devices.profiles.
  std::optional<double> rows_per_second{}, uplink_mbit{}, downlink_mbit{};
};

/// Immutable list, indexed by client.
using capacity_table = std::vector<client_capacity>;

/// Reads `from.devices.capacity_file`, a CSV file with one line per listed client. Columns: client, and any of profile,
/// rows_per_second, uplink_mbit and downlink_mbit. Returns null if the scenario names no file.
[[nodiscard]] expected<std::shared_ptr<const capacity_table>> read_capacity_table(const scenario& from);

} // namespace mneme
