/// parties: who receives what clients send, over which links, as a table. A further party is a further row.
#pragma once
#include "runtime/federation/run_report.hpp"
#include "runtime/method/round.hpp"
#include "runtime/population/population.hpp"
#include <array>
namespace mneme {

/// The server makes the broadcasts, and a client's round ends when its upload is there. The others receive what clients
/// send them besides, and say after each server step what goes out with the next broadcasts.
enum class party_id : std::uint8_t { server, proxy };

struct party {
  using link_time = virtual_duration (client_devices::*)(const transfer&) const;
  const char* name;                    ///< In errors and in events.csv.
  tensors_ref client_result::*part;    ///< What a client's round sends it.
  tensors_ref broadcast::*advice;      ///< Where clients find what it says; null: it makes the broadcast.
  link_time upload_time;               ///< From a client, in virtual time.
  link_time download_time;             ///< To a client.
  std::int64_t run_report::*bytes_to;  ///< Where the report counts what is sent to it,
  std::int64_t run_report::*bytes_from; ///< and what it sends.
  const char* leaves_event;            ///< A client sends its part, in events.csv.
  const char* arrives_event;           ///< The part is there.
  const char* upload_keys;             ///< Keys of a scenario that decide when it arrives.
};

/// By party_id.
inline constexpr std::array parties{
    party{.name = "server",
          .part = &client_result::upload,
          .advice = nullptr,
          .upload_time = &client_devices::upload_time,
          .download_time = &client_devices::download_time,
          .bytes_to = &run_report::upload_bytes,
          .bytes_from = &run_report::download_bytes,
          .leaves_event = "upload",
          .arrives_event = "deliver",
          .upload_keys = "devices.uplink_mbit and devices.latency"},
    party{.name = "proxy",
          .part = &client_result::to_proxy,
          .advice = &broadcast::advice,
          .upload_time = &client_devices::proxy_upload_time,
          .download_time = &client_devices::proxy_download_time,
          .bytes_to = &run_report::proxy_bytes,
          .bytes_from = &run_report::proxy_bytes,
          .leaves_event = "to_proxy",
          .arrives_event = "receive",
          .upload_keys = "devices.proxy_uplink_mbit and devices.latency"},
};

/// A number of bytes for each party; 0: nothing goes there.
using party_bytes = std::array<std::int64_t, parties.size()>;

[[nodiscard]] constexpr std::size_t index_of(party_id who) noexcept { return static_cast<std::size_t>(who); }
[[nodiscard]] constexpr const party& row_of(party_id who) noexcept { return parties[index_of(who)]; }
/// How long a client's part takes to the party.
[[nodiscard]] inline virtual_duration upload_time(const population& clients, party_id who, const transfer& sent) {
  return (clients.devices().*row_of(who).upload_time)(sent);
}
/// Bytes to all parties together.
[[nodiscard]] constexpr std::int64_t sum_of(const party_bytes& bytes) noexcept {
  std::int64_t sum = 0;
  for (const auto part : bytes)
    sum += part;
  return sum;
}

} // namespace mneme
