/// parties: table of the parties that exchange messages with clients, and their links. One row per party.
#pragma once
#include "runtime/federation/run_report.hpp"
#include "runtime/method/round.hpp"
#include "runtime/population/population.hpp"
#include <array>
namespace mneme {

/// The server sends broadcasts; a client's round ends when its upload arrives at the server. Each other party receives
/// its own part of a client's result. After each server step it returns advice, which clients receive with the next
/// broadcasts.
enum class party_id : std::uint8_t { server, proxy };

struct party {
  using link_time = virtual_duration (client_devices::*)(const transfer&) const;
  const char* name;                     ///< Name in errors and events.csv.
  tensors_ref client_result::*part;     ///< The part of a client's result for this party.
  tensors_ref broadcast::*advice;       ///< The party's advice in broadcasts; null for the server.
  link_time upload_time;                ///< Virtual duration of a transfer from a client.
  link_time download_time;              ///< Virtual duration of a transfer to a client.
  std::int64_t run_report::*bytes_to;   ///< Counter of bytes sent to the party.
  std::int64_t run_report::*bytes_from; ///< Counter of bytes sent by the party.
  const char* leaves_event;             ///< Event in events.csv when a client sends its part.
  const char* arrives_event;            ///< Event in events.csv when the part arrives.
  const char* upload_keys;              ///< Scenario keys that determine the arrival time, for error messages.
};

/// All parties, indexed by party_id.
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

/// Bytes for each party; 0 if nothing is sent to it.
using party_bytes = std::array<std::int64_t, parties.size()>;

[[nodiscard]] constexpr std::size_t index_of(party_id who) noexcept { return static_cast<std::size_t>(who); }
[[nodiscard]] constexpr const party& row_of(party_id who) noexcept { return parties[index_of(who)]; }
/// Virtual duration of a client's transfer to the party.
[[nodiscard]] inline virtual_duration upload_time(const population& clients, party_id who, const transfer& sent) {
  return (clients.devices().*row_of(who).upload_time)(sent);
}
/// Total bytes to all parties.
[[nodiscard]] constexpr std::int64_t sum_of(const party_bytes& bytes) noexcept {
  std::int64_t sum = 0;
  for (const auto part : bytes)
    sum += part;
  return sum;
}

} // namespace mneme
