#include "runtime/population/capacity_table.hpp"
#include "runtime/population/client_table.hpp"
#include <cmath>
#include <fmt/format.h>
namespace mneme {

expected<std::shared_ptr<const capacity_table>> read_capacity_table(const scenario& from) {
  if (from.devices.capacity_file.empty())
    return nullptr;
  const auto clients = static_cast<std::size_t>(from.clients.count);
  auto table = std::make_shared<capacity_table>(clients);
  std::vector<std::size_t> lines(clients);
  const auto profiles = static_cast<double>(from.devices.profiles.size());
  auto errors =
      read_client_table({.file = from.devices.capacity_file,
                         .where = from.where("devices.capacity_file"),
                         .clients = from.clients.count,
                         .columns = {},
                         .optional = {"profile", "rows_per_second", "uplink_mbit", "downlink_mbit"}},
                        [&](const client_line& line) -> std::string {
                          if (lines[line.client] > 0)
                            return fmt::format("client {} has line {} already; expected one for each client",
                                               line.client, lines[line.client]);
                          lines[line.client] = line.line;
                          if (line.values[1] == 0.0)
                            return "rows_per_second = 0: expected more";
                          const auto place = line.values[0];
                          if (place && !(*place < profiles && *place == std::floor(*place)))
                            return fmt::format("profile = {}: expected a whole number below {}, the number of "
                                               "devices.profiles",
                                               *place, profiles);
                          auto& said = (*table)[line.client];
                          if (place)
                            said.profile = static_cast<std::size_t>(*place);
                          said.rows_per_second = line.values[1];
                          said.uplink_mbit = line.values[2];
                          said.downlink_mbit = line.values[3];
                          return {};
                        });
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return table;
}

} // namespace mneme
