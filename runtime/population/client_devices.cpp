#include "runtime/population/client_devices.hpp"
#include "runtime/base/check.hpp"
#include "runtime/population/link_trace.hpp"
#include "runtime/population/wait_time.hpp"
#include "runtime/settings/device_profile.hpp"
#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>
namespace mneme {
namespace {

constexpr std::int64_t drawn_at_once_max = 16'384; // number of clients; drawing their devices takes a few milliseconds

virtual_duration transfer_time(double mbit, std::int64_t bytes, virtual_duration extra) {
  MNEME_CHECK(bytes >= 0, bytes);
  const auto latency = std::min(extra, max_wait);
  if (mbit == 0.0)
    return latency;
  const auto in_transit = wait_from_ns(8e3 * static_cast<double>(bytes) / mbit); // 8 * bytes / (mbit * 1e6) seconds
  return std::min(latency + in_transit, max_wait);
}

} // namespace

client_devices::client_devices(const scenario& from, device_inputs facts)
    : seed_(static_cast<std::uint64_t>(from.seed)), devices_(from.devices), facts_(std::move(facts)),
      masks_uploads_(from.uploads.is_masked()) {
  double sum = 0.0;
  for (const auto& choice : devices_.profiles)
    share_ends_.push_back(sum += choice.share);
  for (auto& end : share_ends_)
    end /= sum;
  const auto count = from.clients.count;
  for (auto& [value, drawn_for] : {std::pair{&devices_.rows_per_second, purpose::device_speed},
                                   std::pair{&devices_.uplink_mbit, purpose::device_uplink},
                                   std::pair{&devices_.downlink_mbit, purpose::device_downlink},
                                   std::pair{&devices_.proxy_uplink_mbit, purpose::device_proxy_uplink},
                                   std::pair{&devices_.proxy_downlink_mbit, purpose::device_proxy_downlink}}) {
    if (const auto* list = std::get_if<std::vector<double>>(value)) {
      MNEME_CHECK(std::ssize(*list) == count, list->size(), count);
    } else if (std::holds_alternative<log_normal>(*value) && count <= drawn_at_once_max) {
      // Draws the values for all clients in advance, because each dispatch needs three of them.
      std::vector<double> values;
      for (std::uint32_t client = 0; client < count; ++client)
        values.push_back(device(*value, drawn_for, {client}));
      *value = std::move(values);
    }
  }
}

double client_devices::device(const device_value& value, purpose purpose_id, client_id client) const {
  if (const auto* constant = std::get_if<double>(&value))
    return *constant;
  if (const auto* list = std::get_if<std::vector<double>>(&value))
    return list->at(client.value);
  const auto& [median, sigma] = std::get<log_normal>(value);
  if (sigma == 0.0 || median == 0.0)
    return median;
  rng_stream stream(key_for({.seed = seed_, .client = client}, purpose_id));
  return median * std::exp(sigma * stream.normal());
}

virtual_duration client_devices::compute_time(client_id client, const device_work& work) const {
  MNEME_CHECK(work.rows >= 0, work.rows);
  const auto rows = static_cast<double>(work.rows);
  if (facts_.capacity)
    if (const auto& rate = facts_.capacity->at(client.value).rows_per_second)
      return wait_from_ns(1e9 * rows / *rate);
  if (facts_.speeds.empty())
    return wait_from_ns(1e9 * rows / device(devices_.rows_per_second, purpose::device_speed, client));
  const auto& speed = facts_.speeds[profile_of(client)];
  const auto starts = speed.job_start + (work.begins_round ? speed.round_start : virtual_duration{0});
  const auto rate = work.trains ? speed.train_rows_per_second : speed.forward_rows_per_second;
  return std::min(wait_from_ns(1e9 * rows / rate) + std::min(starts, max_wait), max_wait);
}

virtual_duration client_devices::download_time(const transfer& sent) const {
  return server_transfer_time(sent, link_direction::down);
}

virtual_duration client_devices::upload_time(const transfer& sent) const {
  return server_transfer_time(sent, link_direction::up);
}

virtual_duration client_devices::proxy_download_time(const transfer& sent) const {
  return transfer_time(device(devices_.proxy_downlink_mbit, purpose::device_proxy_downlink, sent.client), sent.bytes,
                       devices_.latency);
}

virtual_duration client_devices::proxy_upload_time(const transfer& sent) const {
  return transfer_time(device(devices_.proxy_uplink_mbit, purpose::device_proxy_uplink, sent.client), sent.bytes,
                       devices_.latency);
}

// -- profiles and links -----------------------------------------------------------------------------------------------

std::size_t client_devices::profile_of(client_id client) const {
  if (facts_.capacity)
    if (const auto& profile = facts_.capacity->at(client.value).profile)
      return *profile;
  if (share_ends_.size() < 2)
    return 0;
  const auto drawn = rng_stream(key_for({.seed = seed_, .client = client}, purpose::device_profile)).uniform();
  const auto place = std::upper_bound(share_ends_.begin(), share_ends_.end(), drawn) - share_ends_.begin();
  return std::min(static_cast<std::size_t>(place), share_ends_.size() - 1);
}

/// The client's link profile. Returns null if the keys of [devices] define the link.
const link_profile* client_devices::link_of(client_id client) const {
  if (devices_.profiles_read.empty())
    return nullptr;
  const auto& link = devices_.profiles_read[profile_of(client)]->link;
  return link ? &*link : nullptr;
}

double client_devices::mbit_of(client_id client, link_direction direction) const {
  const bool is_up = direction == link_direction::up;
  if (facts_.capacity) {
    const auto& own = facts_.capacity->at(client.value);
    if (const auto& mbit = is_up ? own.uplink_mbit : own.downlink_mbit)
      return *mbit;
  }
  const auto* const link = link_of(client);
  if (is_up)
    return device(link ? link->uplink_mbit : devices_.uplink_mbit, purpose::device_uplink, client);
  return device(link ? link->downlink_mbit : devices_.downlink_mbit, purpose::device_downlink, client);
}

std::pair<double, virtual_time> client_devices::client_mbit(client_id client, link_direction direction,
                                                            virtual_time at) const {
  if (facts_.links && facts_.links->names(client)) {
    const auto [mbit, until] = facts_.links->rate(client, direction, at);
    return {mbit, until};
  }
  const auto mbit = mbit_of(client, direction);
  return {mbit == 0.0 ? std::numeric_limits<double>::infinity() : mbit, never};
}

/// With secure aggregation, an upload waits for 4 messages to the server and 3 from it: keys, shares, the masked
/// upload, and the shares that remove the masks (Bonawitz et al. 2017, figure 4; without the optional consistency
/// check).
virtual_duration client_devices::latency(client_id client, link_direction direction, std::uint32_t visit) const {
  const auto* const link = link_of(client);
  const auto of_message = [&](link_direction sent) {
    const auto fixed = std::min(link ? link->latency : devices_.latency, max_wait);
    if (!link || link->jitter.median == 0.0)
      return fixed;
    const auto drawn_for = sent == link_direction::up ? purpose::uplink_jitter : purpose::downlink_jitter;
    rng_stream stream(key_for({.seed = seed_, .client = client, .visit = visit}, drawn_for));
    const auto seconds = link->jitter.median * std::exp(link->jitter.sigma * stream.normal());
    return std::min(fixed + wait_from_ns(1e9 * seconds), max_wait);
  };
  if (!masks_uploads_ || direction == link_direction::down)
    return of_message(direction);
  const auto up = of_message(link_direction::up), down = of_message(link_direction::down);
  return std::max(up, down) > max_wait / 8 ? max_wait : 4 * up + 3 * down;
}

virtual_duration client_devices::server_transfer_time(const transfer& sent, link_direction direction) const {
  if (facts_.links && facts_.links->names(sent.client)) {
    const auto passing = facts_.links->transfer_duration(sent.client, direction, sent.bytes, sent.begins);
    const auto extra = latency(sent.client, direction, sent.visit);
    return passing && *passing < max_wait ? std::min(*passing + extra, max_wait) : max_wait;
  }
  const bool is_fixed = devices_.profiles_read.empty() && !masks_uploads_;
  const auto extra = is_fixed ? devices_.latency : latency(sent.client, direction, sent.visit);
  return transfer_time(mbit_of(sent.client, direction), sent.bytes, extra);
}

} // namespace mneme
