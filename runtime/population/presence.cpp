#include "runtime/population/presence.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <tuple>
namespace mneme {
namespace {

using kind = presence_change::kind;

constexpr auto number(kind what) { return static_cast<std::uint32_t>(what); }

} // namespace

presence::presence(std::shared_ptr<const population> people)
    : people_(std::move(people)), random_(people_->comes_and_goes()), reaches_(people_->is_ever_out_of_reach()),
      staggered_(people_->changes_task_one_by_one()) {
  const auto clients = static_cast<std::size_t>(people_->size());
  if (random_ || reaches_)
    flags_.resize(clients);
  if (random_)
    stays_.resize(clients);
  if (staggered_)
    entered_.resize(clients);
  plan_first_changes();
}

/// By time, then client, then kind: the order in which entries were made decides nothing.
bool presence::later(const entry& a, const entry& b) noexcept {
  return std::tie(a.at, a.who, a.what) > std::tie(b.at, b.who, b.what);
}

void presence::push(const entry& one) {
  if (one.at == never)
    return;
  calendar_.push_back(one);
  std::push_heap(calendar_.begin(), calendar_.end(), later);
}

void presence::plan_first_changes() {
  const auto clients = static_cast<std::uint32_t>(people_->size());
  // Room for all that each client can wait for: growing later would need twice the memory for a while.
  calendar_.reserve(std::size_t{clients} * static_cast<std::size_t>(random_ + reaches_ + staggered_));
  for (std::uint32_t c = 0; random_ && c < clients; ++c)
    calendar_.push_back({people_->later_by({}, people_->arrival({c})), {c}, number(kind::joined)});
  for (std::uint32_t c = 0; reaches_ && c < clients; ++c) {
    const auto window = people_->reach({c}, {});
    if (!window.within)
      flags_[c] |= away;
    if (window.until != never)
      calendar_.push_back({window.until, {c}, number(window.within ? kind::unreachable : kind::reachable)});
  }
  std::erase_if(calendar_, [](const entry& one) { return one.at == never; });
  std::make_heap(calendar_.begin(), calendar_.end(), later);
}

void presence::open_task(task_id which, virtual_time now) {
  opened_ = which;
  if (!staggered_ || which.value == 0) // everybody begins with the first task
    return;
  const auto clients = static_cast<std::uint32_t>(people_->size());
  for (std::uint32_t c = 0; c < clients; ++c)
    calendar_.push_back(
        {people_->later_by(now, people_->transition_delay({c}, which)), {c}, number(kind::entered_task) + which.value});
  std::make_heap(calendar_.begin(), calendar_.end(), later);
}

std::optional<virtual_time> presence::next_change() const {
  if (calendar_.empty())
    return std::nullopt;
  return calendar_.front().at;
}

std::vector<presence_change> presence::move_to(virtual_time now) {
  std::vector<presence_change> changes;
  while (!calendar_.empty() && calendar_.front().at <= now) {
    std::pop_heap(calendar_.begin(), calendar_.end(), later);
    const auto one = calendar_.back();
    calendar_.pop_back();
    const auto what = static_cast<kind>(std::min(one.what, number(kind::entered_task)));
    const task_id task{what == kind::entered_task ? one.what - number(kind::entered_task) : 0};
    if (what == kind::entered_task && task <= entered_[one.who.value])
      continue; // overtaken: a later task was entered first
    changes.push_back({.at = one.at, .who = one.who, .what = what, .task = task});
    follow_up(one);
  }
  return changes;
}

/// Makes the change, and plans the client's next of its kind.
void presence::follow_up(const entry& one) {
  const auto who = one.who.value;
  switch (static_cast<kind>(std::min(one.what, number(kind::entered_task)))) {
  case kind::joined:
    flags_[who] = static_cast<std::uint8_t>((flags_[who] | enrolled_now) & ~has_left);
    ++enrolled_;
    return push({people_->later_by(one.at, people_->stay(one.who, stays_[who])), one.who, number(kind::left)});
  case kind::left:
    flags_[who] = static_cast<std::uint8_t>((flags_[who] | has_left) & ~enrolled_now);
    --enrolled_;
    if (const auto absence = people_->absence(one.who, stays_[who]++))
      push({people_->later_by(one.at, *absence), one.who, number(kind::joined)});
    return;
  case kind::reachable:
  case kind::unreachable: {
    const auto window = people_->reach(one.who, one.at);
    flags_[who] = static_cast<std::uint8_t>(window.within ? flags_[who] & ~away : flags_[who] | away);
    return push({window.until, one.who, number(window.within ? kind::unreachable : kind::reachable)});
  }
  case kind::entered_task:
    entered_[who] = {one.what - number(kind::entered_task)};
    return;
  }
}

membership presence::member(client_id who) const {
  if (!random_)
    return people_->member(who, task_of(who));
  const auto flags = flags_[who.value];
  return flags & enrolled_now ? membership::active : flags & has_left ? membership::left : membership::not_yet;
}

std::int64_t presence::enrolled() const { return random_ ? enrolled_ : people_->enrolled(opened_); }

bool presence::endless() const { return people_->goes_on_for_ever(); }

} // namespace mneme
