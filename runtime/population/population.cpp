#include "runtime/population/population.hpp"
#include "runtime/base/ceil_div.hpp"
#include "runtime/base/check.hpp"
#include "runtime/population/availability_trace.hpp"
#include <algorithm>
#include <utility>
namespace mneme {
namespace {

/// Number of clients in the groups before `group`, if `count` clients form `groups` contiguous groups.
std::int64_t first_of_group(std::int64_t group, std::int64_t groups, std::int64_t count) {
  return ceil_div(group * count, groups);
}

} // namespace

population::population(const scenario& from, device_inputs facts)
    : count_(from.clients.count), seed_(static_cast<std::uint64_t>(from.seed)), enrolment_(from.enrolment),
      devices_(from, facts), dropout_(from.devices.dropout), availability_(from.devices.availability),
      availability_period_(from.devices.availability_period), trace_end_(from.devices.trace_end),
      availability_trace_(std::move(facts.availability)),
      staggered_(from.tasks.transition == task_transition::staggered), transition_spread_(from.tasks.transition_spread),
      keep_task_share_(from.tasks.keep_task_share) {
  MNEME_CHECK((availability_ == device_availability::file) == (availability_trace_ != nullptr), count_);
  MNEME_CHECK(count_ > 0, count_);
  MNEME_CHECK(enrolment_.kind != enrolment_kind::table || !enrolment_.table.empty(), enrolment_.table.size());
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

bool population::drops_out(client_id client, task_id, std::uint32_t visit) const {
  if (dropout_ <= 0.0)
    return false;
  rng_stream stream(key_for({.seed = seed_, .client = client, .visit = visit}, purpose::drop_out));
  return stream.uniform() < dropout_;
}

double population::dropout_point(client_id client, std::uint32_t visit) const {
  return rng_stream(key_for({.seed = seed_, .client = client, .visit = visit}, purpose::vanishing)).uniform();
}

// -- over virtual time ------------------------------------------------------------------------------------------------

bool population::changes_without_end() const noexcept {
  const bool repeats = availability_ == device_availability::file && trace_end_ == trace_end_rule::repeat;
  return (has_random_enrolment() && enrolment_.absence_mean.count() > 0) || repeats ||
         availability_ == device_availability::diurnal;
}

virtual_duration population::draw_duration(virtual_duration mean, client_id client, std::uint32_t n,
                                           std::uint64_t index) const {
  if (mean.count() == 0)
    return mean;
  const rng_key key{.seed = seed_, .client = client, .visit = n, .index = index};
  return wait_from_ns(rng_stream(key_for(key, purpose::enrolment)).exponential(static_cast<double>(mean.count())));
}

virtual_duration population::arrival_time(client_id client) const {
  return draw_duration(enrolment_.arrival_mean, client, 0, 0);
}

virtual_duration population::enrolled_time(client_id client, std::uint32_t n) const {
  return draw_duration(enrolment_.lifetime_mean, client, n, 1);
}

std::optional<virtual_duration> population::absence_time(client_id client, std::uint32_t n) const {
  if (enrolment_.absence_mean.count() == 0)
    return std::nullopt;
  return draw_duration(enrolment_.absence_mean, client, n, 2);
}

virtual_duration population::transition_delay(client_id client, task_id into) const {
  const rng_key key{.seed = seed_, .client = client, .task = into};
  const auto share = rng_stream(key_for(key, purpose::transition)).uniform();
  return wait_from_ns(share * static_cast<double>(transition_spread_.count()));
}

std::vector<client_id> population::clients_keeping_task(task_id into, std::vector<client_id> enrolled) const {
  constexpr double rounding = 1e-9; // tolerance for a product that would be an integer in exact arithmetic
  const auto n = static_cast<double>(enrolled.size());
  const auto going = static_cast<std::size_t>((1.0 - keep_task_share_) * n + rounding);
  rng_stream stream(key_for({.seed = seed_, .task = into}, purpose::staying));
  stream.shuffle(std::span(enrolled));
  enrolled.resize(enrolled.size() - std::min(going, enrolled.size()));
  std::sort(enrolled.begin(), enrolled.end());
  return enrolled;
}

/// Diurnal availability: a client's day begins at a random time, and the client is reachable in the first half of that
/// day.
availability_window population::availability(client_id client, virtual_time at) const {
  if (availability_ == device_availability::always)
    return {};
  if (availability_trace_)
    return availability_trace_->window(client, at);
  const auto period = availability_period_, half = period / 2;
  rng_stream stream(key_for({.seed = seed_, .client = client}, purpose::reachability));
  const virtual_duration morning(
      static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(period.count())))); // the client's second day
                                                                                            // begins at this time
  const auto into_day = (at.time_since_epoch() % period + period - morning) % period;
  const bool within = into_day < half;
  return {.within = within, .until = add_saturating(at, (within ? half : period) - into_day)};
}

} // namespace mneme
