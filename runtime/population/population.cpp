#include "runtime/population/population.hpp"
#include "runtime/base/check.hpp"
#include "runtime/population/availability_trace.hpp"
#include "runtime/population/link_trace.hpp"
#include "runtime/settings/device_profile.hpp"
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
namespace mneme {
namespace {

constexpr auto longest_wait = end_of_runs.time_since_epoch();
constexpr std::int64_t drawn_at_once_max = 16'384; // clients, whose devices are drawn in some milliseconds

/// Rounded up to 1 ns. Callers form one quotient of products, so that a whole number of ns comes out exact.
virtual_duration waited(double ns) {
  if (!(ns < static_cast<double>(longest_wait.count())))
    return longest_wait;
  return virtual_duration{static_cast<virtual_duration::rep>(std::ceil(ns))};
}

/// Clients of blocks before `group` when `count` clients are cut into `groups` blocks.
std::int64_t first_of_group(std::int64_t group, std::int64_t groups, std::int64_t count) {
  return (group * count + groups - 1) / groups;
}

} // namespace

population::population(const scenario& from, device_facts facts)
    : count_(from.clients.count), seed_(static_cast<std::uint64_t>(from.seed)), enrolment_(from.enrolment),
      devices_(from.devices), staggered_(from.tasks.transition == task_transition::staggered),
      transition_spread_(from.tasks.transition_spread), staying_share_(from.tasks.staying_share),
      facts_(std::move(facts)) {
  MNEME_CHECK((devices_.availability == device_availability::file) == (facts_.availability != nullptr), count_);
  double sum = 0.0;
  for (const auto& choice : devices_.profiles)
    share_ends_.push_back(sum += choice.share);
  for (auto& end : share_ends_)
    end /= sum;
  MNEME_CHECK(count_ > 0, count_);
  MNEME_CHECK(enrolment_.kind != enrolment_kind::table || !enrolment_.table.empty(), enrolment_.table.size());
  for (auto& [value, drawn_for] : {std::pair{&devices_.rows_per_second, purpose::device_speed},
                                   std::pair{&devices_.uplink_mbit, purpose::device_uplink},
                                   std::pair{&devices_.downlink_mbit, purpose::device_downlink},
                                   std::pair{&devices_.proxy_uplink_mbit, purpose::device_proxy_uplink},
                                   std::pair{&devices_.proxy_downlink_mbit, purpose::device_proxy_downlink}}) {
    if (const auto* list = std::get_if<std::vector<double>>(value))
      MNEME_CHECK(std::ssize(*list) == count_, list->size(), count_);
    else if (std::holds_alternative<log_normal>(*value) && count_ <= drawn_at_once_max)
      *value = drawn_for_all(*value, drawn_for);
  }
}

/// The value of each client. A dispatch asks for three of them, and clients are dispatched many times.
std::vector<double> population::drawn_for_all(const device_value& value, purpose purpose_id) const {
  std::vector<double> values;
  for (std::uint32_t client = 0; client < count_; ++client)
    values.push_back(device(value, purpose_id, {client}));
  return values;
}

membership population::member(client_id client_number, task_id during) const {
  const std::int64_t client = client_number.value, task = during.value;
  MNEME_CHECK(client < count_, client, count_);
  if (enrolment_.kind == enrolment_kind::all || enrolment_.kind == enrolment_kind::random)
    return membership::active;
  if (enrolment_.kind == enrolment_kind::growing)
    return client < enrolled(during) ? membership::active : membership::not_yet;
  const auto group = client * std::ssize(enrolment_.table) / count_;
  const auto& letters = enrolment_.table[static_cast<std::size_t>(group)];
  MNEME_CHECK(task < std::ssize(letters), task, letters);
  const char letter = letters[static_cast<std::size_t>(task)];
  return letter == 'A' ? membership::active : letter == 'O' ? membership::left : membership::not_yet;
}

std::int64_t population::enrolled(task_id during) const {
  if (enrolment_.kind == enrolment_kind::all || enrolment_.kind == enrolment_kind::random)
    return count_;
  if (enrolment_.kind == enrolment_kind::growing)
    return std::min(count_, enrolment_.initial + enrolment_.added_per_task * std::int64_t{during.value});
  const std::int64_t groups = std::ssize(enrolment_.table);
  std::int64_t active = 0;
  for (std::int64_t group = 0; group < groups; ++group)
    if (enrolment_.table[static_cast<std::size_t>(group)].at(during.value) == 'A')
      active += first_of_group(group + 1, groups, count_) - first_of_group(group, groups, count_);
  return active;
}

std::vector<std::uint32_t> population::members(task_id during) const {
  std::vector<std::uint32_t> active;
  for (std::uint32_t client = 0; client < count_; ++client)
    if (member({client}, during) == membership::active)
      active.push_back(client);
  return active;
}

virtual_duration population::compute_time(client_id client, const device_work& work) const {
  MNEME_CHECK(work.rows >= 0, work.rows);
  const auto rows = static_cast<double>(work.rows);
  if (facts_.capacity)
    if (const auto& rate = facts_.capacity->at(client.value).rows_per_second)
      return waited(1e9 * rows / *rate);
  if (facts_.speeds.empty())
    return waited(1e9 * rows / device(devices_.rows_per_second, purpose::device_speed, client));
  const auto& speed = facts_.speeds[profile_of(client)];
  const auto starts = speed.job_start + (work.begins_round ? speed.round_start : virtual_duration{0});
  const auto rate = work.trains ? speed.train_rows_per_second : speed.forward_rows_per_second;
  return std::min(waited(1e9 * rows / rate) + std::min(starts, longest_wait), longest_wait);
}

virtual_duration population::download_time(const transfer& sent) const {
  return server_transfer_time(sent, link_direction::down);
}

virtual_duration population::upload_time(const transfer& sent) const {
  return server_transfer_time(sent, link_direction::up);
}

virtual_duration population::proxy_download_time(const transfer& sent) const {
  return transfer_time(device(devices_.proxy_downlink_mbit, purpose::device_proxy_downlink, sent.client), sent.bytes,
                       devices_.latency);
}

virtual_duration population::proxy_upload_time(const transfer& sent) const {
  return transfer_time(device(devices_.proxy_uplink_mbit, purpose::device_proxy_uplink, sent.client), sent.bytes,
                       devices_.latency);
}

bool population::drops_out(client_id client, task_id, std::uint32_t visit) const {
  if (devices_.dropout <= 0.0)
    return false;
  rng_stream stream(key_for({.seed = seed_, .client = client, .visit = visit}, purpose::drop_out));
  return stream.uniform() < devices_.dropout;
}

double population::dropout_point(client_id client, std::uint32_t visit) const {
  return rng_stream(key_for({.seed = seed_, .client = client, .visit = visit}, purpose::vanishing)).uniform();
}

// -- over virtual time ------------------------------------------------------------------------------------------------

bool population::changes_without_end() const noexcept {
  const bool repeats =
      devices_.availability == device_availability::file && devices_.trace_end == trace_end_rule::repeat;
  return (has_random_enrolment() && enrolment_.absence_mean.count() > 0) || repeats ||
         devices_.availability == device_availability::diurnal;
}

virtual_duration population::drawn(virtual_duration mean, client_id client, std::uint32_t n,
                                   std::uint64_t index) const {
  if (mean.count() == 0)
    return mean;
  const rng_key key{.seed = seed_, .client = client, .visit = n, .index = index};
  return waited(rng_stream(key_for(key, purpose::enrolment)).exponential(static_cast<double>(mean.count())));
}

virtual_duration population::arrival_time(client_id client) const {
  return drawn(enrolment_.arrival_mean, client, 0, 0);
}

virtual_duration population::enrolled_time(client_id client, std::uint32_t n) const {
  return drawn(enrolment_.lifetime_mean, client, n, 1);
}

std::optional<virtual_duration> population::absence_time(client_id client, std::uint32_t n) const {
  if (enrolment_.absence_mean.count() == 0)
    return std::nullopt;
  return drawn(enrolment_.absence_mean, client, n, 2);
}

virtual_duration population::transition_delay(client_id client, task_id into) const {
  const rng_key key{.seed = seed_, .client = client, .task = into};
  const auto share = rng_stream(key_for(key, purpose::transition)).uniform();
  return waited(share * static_cast<double>(transition_spread_.count()));
}

std::vector<client_id> population::staying(task_id into, std::vector<client_id> enrolled) const {
  constexpr double rounding = 1e-9; // of a product that is whole but for its last digit
  const auto n = static_cast<double>(enrolled.size());
  const auto going = static_cast<std::size_t>((1.0 - staying_share_) * n + rounding);
  rng_stream stream(key_for({.seed = seed_, .task = into}, purpose::staying));
  stream.shuffle(std::span(enrolled));
  enrolled.resize(enrolled.size() - std::min(going, enrolled.size()));
  std::sort(enrolled.begin(), enrolled.end());
  return enrolled;
}

/// A day begins at a time of the client's own; its first half is when the device can be reached.
availability_window population::availability(client_id client, virtual_time at) const {
  if (devices_.availability == device_availability::always)
    return {};
  if (facts_.availability)
    return facts_.availability->window(client, at);
  const auto period = devices_.availability_period, half = period / 2;
  rng_stream stream(key_for({.seed = seed_, .client = client}, purpose::reachability));
  const virtual_duration morning(
      static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(period.count())))); // of the second day
  const auto into_day = (at.time_since_epoch() % period + period - morning) % period;
  const bool within = into_day < half;
  return {.within = within, .until = later_by(at, (within ? half : period) - into_day)};
}

double population::device(const device_value& value, purpose purpose_id, client_id client) const {
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

// -- profiles and links -----------------------------------------------------------------------------------------------

std::size_t population::profile_of(client_id client) const {
  if (facts_.capacity)
    if (const auto& profile = facts_.capacity->at(client.value).profile)
      return *profile;
  if (share_ends_.size() < 2)
    return 0;
  const auto drawn = rng_stream(key_for({.seed = seed_, .client = client}, purpose::device_profile)).uniform();
  const auto place = std::upper_bound(share_ends_.begin(), share_ends_.end(), drawn) - share_ends_.begin();
  return std::min(static_cast<std::size_t>(place), share_ends_.size() - 1);
}

/// Null: the links of the keys hold.
const link_profile* population::link_of(client_id client) const {
  if (devices_.profiles_read.empty())
    return nullptr;
  const auto& link = devices_.profiles_read[profile_of(client)]->link;
  return link ? &*link : nullptr;
}

double population::mbit_of(client_id client, link_direction direction) const {
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

std::pair<double, virtual_time> population::own_mbit(client_id client, link_direction direction,
                                                     virtual_time at) const {
  if (facts_.links && facts_.links->names(client)) {
    const auto [mbit, until] = facts_.links->rate(client, direction, at);
    return {mbit, until};
  }
  const auto mbit = mbit_of(client, direction);
  return {mbit == 0.0 ? std::numeric_limits<double>::infinity() : mbit, never};
}

virtual_duration population::latency(client_id client, link_direction direction, std::uint32_t visit) const {
  const auto* const link = link_of(client);
  const auto fixed = std::min(link ? link->latency : devices_.latency, longest_wait);
  if (!link || link->jitter.median == 0.0)
    return fixed;
  const auto drawn_for = direction == link_direction::up ? purpose::uplink_jitter : purpose::downlink_jitter;
  rng_stream stream(key_for({.seed = seed_, .client = client, .visit = visit}, drawn_for));
  const auto seconds = link->jitter.median * std::exp(link->jitter.sigma * stream.normal());
  return std::min(fixed + waited(1e9 * seconds), longest_wait);
}

virtual_duration population::server_transfer_time(const transfer& sent, link_direction direction) const {
  if (facts_.links && facts_.links->names(sent.client)) {
    const auto passing = facts_.links->passing_time(sent.client, direction, sent.bytes, sent.begins);
    const auto extra = latency(sent.client, direction, sent.visit);
    return passing && *passing < longest_wait ? std::min(*passing + extra, longest_wait) : longest_wait;
  }
  const auto extra = devices_.profiles_read.empty() ? devices_.latency : latency(sent.client, direction, sent.visit);
  return transfer_time(mbit_of(sent.client, direction), sent.bytes, extra);
}

virtual_duration population::transfer_time(double mbit, std::int64_t bytes, virtual_duration extra) const {
  MNEME_CHECK(bytes >= 0, bytes);
  const auto latency = std::min(extra, longest_wait);
  if (mbit == 0.0)
    return latency;
  const auto in_transit = waited(8e3 * static_cast<double>(bytes) / mbit); // 8 * bytes / (mbit * 1e6) s
  return std::min(latency + in_transit, longest_wait);
}

} // namespace mneme
