#include "runtime/population.hpp"
#include "runtime/check.hpp"
#include <algorithm>
#include <cmath>
namespace mneme {
namespace {

/// 31 years: no run lasts so long, and the clock has room for sums of such waits.
constexpr double wait_max_ns = 1e18;

/// Rounded up to 1 ns. Callers form one quotient of products, so that a whole number of ns comes out exact.
virtual_duration waited(double ns) {
  return virtual_duration{static_cast<virtual_duration::rep>(std::ceil(std::min(ns, wait_max_ns)))};
}

/// Clients of blocks before `group` when `count` clients are cut into `groups` blocks.
std::int64_t first_of_group(std::int64_t group, std::int64_t groups, std::int64_t count) {
  return (group * count + groups - 1) / groups;
}

} // namespace

population::population(const scenario& from)
    : count_(from.clients.count), seed_(static_cast<std::uint64_t>(from.seed)), enrolment_(from.enrolment),
      devices_(from.devices) {
  MNEME_CHECK(count_ > 0, count_);
  MNEME_CHECK(enrolment_.kind != enrolment_kind::table || !enrolment_.table.empty(), enrolment_.table.size());
  for (const auto* value : {&devices_.rows_per_second, &devices_.uplink_mbit, &devices_.downlink_mbit})
    if (const auto* list = std::get_if<std::vector<double>>(value))
      MNEME_CHECK(std::ssize(*list) == count_, list->size(), count_);
}

membership population::member(client_id who, task_id during) const {
  const std::int64_t client = who.value, task = during.value;
  MNEME_CHECK(client < count_, client, count_);
  if (enrolment_.kind == enrolment_kind::all)
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
  if (enrolment_.kind == enrolment_kind::all)
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

virtual_duration population::compute_time(client_id who, std::int64_t rows) const {
  MNEME_CHECK(rows >= 0, rows);
  return waited(1e9 * static_cast<double>(rows) / device(devices_.rows_per_second, purpose::device_speed, who));
}

virtual_duration population::download_time(client_id who, std::int64_t bytes) const {
  return transfer_time(device(devices_.downlink_mbit, purpose::device_downlink, who), bytes);
}

virtual_duration population::upload_time(client_id who, std::int64_t bytes) const {
  return transfer_time(device(devices_.uplink_mbit, purpose::device_uplink, who), bytes);
}

bool population::drops_out(client_id who, task_id, std::uint32_t visit) const {
  if (devices_.dropout <= 0.0)
    return false;
  rng_stream stream(key_for({.seed = seed_, .client = who, .visit = visit}, purpose::drop_out));
  return stream.uniform() < devices_.dropout;
}

double population::device(const device_value& value, purpose what, client_id who) const {
  if (const auto* constant = std::get_if<double>(&value))
    return *constant;
  if (const auto* list = std::get_if<std::vector<double>>(&value))
    return list->at(who.value);
  const auto& [median, sigma] = std::get<log_normal>(value);
  if (sigma == 0.0 || median == 0.0)
    return median;
  rng_stream stream(key_for({.seed = seed_, .client = who}, what));
  return median * std::exp(sigma * stream.normal());
}

virtual_duration population::transfer_time(double mbit, std::int64_t bytes) const {
  MNEME_CHECK(bytes >= 0, bytes);
  if (mbit == 0.0)
    return devices_.latency;
  return devices_.latency + waited(8e3 * static_cast<double>(bytes) / mbit); // 8 * bytes / (mbit * 1e6) s
}

} // namespace mneme
