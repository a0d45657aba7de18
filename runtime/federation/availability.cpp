#include "runtime/federation/availability.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <tuple>
namespace mneme {
namespace {

using kind = availability_change::kind;

constexpr auto number(kind change) { return static_cast<std::uint32_t>(change); }

} // namespace

availability::availability(std::shared_ptr<const population> clients)
    : clients_(std::move(clients)), random_(clients_->has_random_enrolment()),
      reaches_(clients_->limits_availability()), staggered_(clients_->has_staggered_tasks()) {
  const auto count = static_cast<std::size_t>(clients_->size());
  if (random_ || reaches_)
    flags_.resize(count);
  if (random_)
    stays_.resize(count);
  if (staggered_ || clients_->has_clients_keeping_task())
    entered_.resize(count);
  plan_first_changes();
}

/// Orders entries by time, then client, then kind, so that the order of insertion has no effect.
bool availability::later(const entry& a, const entry& b) noexcept {
  return std::tie(a.at, a.client, a.change) > std::tie(b.at, b.client, b.change);
}

void availability::push(const entry& change) {
  if (change.at == never)
    return;
  calendar_.push_back(change);
  std::push_heap(calendar_.begin(), calendar_.end(), later);
}

void availability::plan_first_changes() {
  const auto count = static_cast<std::uint32_t>(clients_->size());
  // Reserves the final size, because growing a vector temporarily needs both the old and the new memory.
  calendar_.reserve(std::size_t{count} * static_cast<std::size_t>(random_ + reaches_ + staggered_));
  for (std::uint32_t c = 0; random_ && c < count; ++c)
    calendar_.push_back({add_saturating({}, clients_->arrival_time({c})), {c}, number(kind::joined)});
  for (std::uint32_t c = 0; reaches_ && c < count; ++c) {
    const auto window = clients_->availability({c}, {});
    if (!window.within)
      flags_[c] |= away;
    if (window.until != never)
      calendar_.push_back({window.until, {c}, number(window.within ? kind::unreachable : kind::reachable)});
  }
  std::erase_if(calendar_, [](const entry& change) { return change.at == never; });
  std::make_heap(calendar_.begin(), calendar_.end(), later);
}

void availability::open_task(task_id task, virtual_time now) {
  if (entered_.empty() || task.value == 0) { // every client starts in the first task
    opened_ = task;
    return;
  }
  const auto staying_clients = clients_keeping_task(task);
  opened_ = task;
  auto next_staying = staying_clients.begin();
  const auto count = static_cast<std::uint32_t>(clients_->size());
  for (std::uint32_t c = 0; c < count; ++c)
    if (next_staying != staying_clients.end() && next_staying->value == c)
      ++next_staying;
    else if (staggered_)
      calendar_.push_back(
          {add_saturating(now, clients_->transition_delay({c}, task)), {c}, number(kind::entered_task) + task.value});
    else
      entered_[c] = task;
  std::make_heap(calendar_.begin(), calendar_.end(), later);
}

/// Draws the clients that keep their old task. Only clients that are enrolled both now and in the new task are
/// candidates.
std::vector<client_id> availability::clients_keeping_task(task_id into) const {
  std::vector<client_id> enrolled;
  if (!clients_->has_clients_keeping_task())
    return enrolled;
  const auto count = static_cast<std::uint32_t>(clients_->size());
  for (std::uint32_t c = 0; c < count; ++c)
    if (member({c}) == membership::active && clients_->member({c}, into) == membership::active)
      enrolled.push_back({c});
  return clients_->clients_keeping_task(into, std::move(enrolled));
}

std::optional<virtual_time> availability::next_change() const {
  if (calendar_.empty())
    return std::nullopt;
  return calendar_.front().at;
}

std::vector<availability_change> availability::move_to(virtual_time now) {
  std::vector<availability_change> changes;
  while (!calendar_.empty() && calendar_.front().at <= now) {
    std::pop_heap(calendar_.begin(), calendar_.end(), later);
    const auto next = calendar_.back();
    calendar_.pop_back();
    const auto change = static_cast<kind>(std::min(next.change, number(kind::entered_task)));
    const task_id task{change == kind::entered_task ? next.change - number(kind::entered_task) : 0};
    if (change == kind::entered_task && task <= entered_[next.client.value])
      continue; // superseded: the client has already entered a later task
    changes.push_back({.at = next.at, .client = next.client, .change_kind = change, .task = task});
    follow_up(next);
  }
  return changes;
}

/// Applies the change and schedules the client's next change of this kind.
void availability::follow_up(const entry& change) {
  const auto client = change.client.value;
  switch (static_cast<kind>(std::min(change.change, number(kind::entered_task)))) {
  case kind::joined:
    flags_[client] = static_cast<std::uint8_t>((flags_[client] | enrolled_now) & ~has_left);
    ++enrolled_;
    return push({add_saturating(change.at, clients_->enrolled_time(change.client, stays_[client])), change.client,
                 number(kind::left)});
  case kind::left:
    flags_[client] = static_cast<std::uint8_t>((flags_[client] | has_left) & ~enrolled_now);
    --enrolled_;
    if (const auto absence = clients_->absence_time(change.client, stays_[client]++))
      push({add_saturating(change.at, *absence), change.client, number(kind::joined)});
    return;
  case kind::reachable:
  case kind::unreachable: {
    const auto window = clients_->availability(change.client, change.at);
    flags_[client] = static_cast<std::uint8_t>(window.within ? flags_[client] & ~away : flags_[client] | away);
    return push({window.until, change.client, number(window.within ? kind::unreachable : kind::reachable)});
  }
  case kind::entered_task:
    entered_[client] = {change.change - number(kind::entered_task)};
    return;
  }
}

bool availability::is_valid(std::size_t tasks) const {
  const auto count = static_cast<std::size_t>(clients_->size());
  const auto is_of_client = [count](bool kept, const auto& values) { return values.size() == (kept ? count : 0); };
  const auto is_possible = [&](const entry& change) {
    return change.client.value < count && change.at.time_since_epoch().count() >= 0 &&
           change.change < number(kind::entered_task) + tasks && (random_ || change.change > number(kind::left)) &&
           (reaches_ || change.change < number(kind::reachable) || change.change >= number(kind::entered_task)) &&
           (staggered_ || change.change < number(kind::entered_task));
  };
  return is_of_client(random_ || reaches_, flags_) && is_of_client(random_, stays_) &&
         is_of_client(staggered_ || clients_->has_clients_keeping_task(), entered_) && opened_.value < tasks &&
         enrolled_ >= 0 && enrolled_ <= clients_->size() && std::is_heap(calendar_.begin(), calendar_.end(), later) &&
         std::all_of(calendar_.begin(), calendar_.end(), is_possible) &&
         std::all_of(entered_.begin(), entered_.end(), [&](task_id task) { return task <= opened_; });
}

membership availability::member(client_id client) const {
  if (!random_)
    return clients_->member(client, task_of(client));
  const auto flags = flags_[client.value];
  return flags & enrolled_now ? membership::active : flags & has_left ? membership::left : membership::not_yet;
}

bool availability::may_take_part(client_id client) const {
  if (!random_)
    return member(client) == membership::active || task_of(client) < opened_;
  return !(flags_[client.value] & has_left) || clients_->absence_time(client, 0);
}

std::int64_t availability::enrolled() const { return random_ ? enrolled_ : clients_->enrolled(opened_); }

bool availability::endless() const { return clients_->changes_without_end(); }

} // namespace mneme
