#include "tests/runtime/federation/model_check/reference_clients.hpp"
#include "runtime/population/cohort.hpp"
#include <algorithm>
namespace mneme::test {

reference_clients::reference_clients(const federation_settings& rules)
    : rules_(rules), clients_(static_cast<std::size_t>(population_.size())) {
  for (std::uint32_t c = 0; c < clients_.size(); ++c) {
    auto& client = clients_[c];
    if (population_.has_random_enrolment())
      client.changes.insert({virtual_time{population_.arrival_time({c})}, client_change::joined, 0});
    if (!population_.limits_availability())
      continue;
    const auto window = population_.availability({c}, {});
    client.reachable = window.within;
    client.changes.insert({window.until, window.within ? client_change::unreachable : client_change::reachable, 0});
  }
}

void reference_clients::open_task(task_id task, virtual_time now) {
  std::vector<client_id> before;
  for (std::uint32_t c = 0; c < clients_.size(); ++c)
    if (member({c}) == membership::active && population_.member({c}, task) == membership::active)
      before.push_back({c});
  const bool some_stay = task.value > 0 && population_.has_clients_keeping_task();
  const auto staying = some_stay ? population_.clients_keeping_task(task, before) : std::vector<client_id>{};
  opened_ = task;
  for (std::uint32_t c = 0; c < clients_.size(); ++c)
    if (std::find(staying.begin(), staying.end(), client_id{c}) != staying.end())
      continue;
    else if (!population_.has_staggered_tasks() || task.value == 0)
      clients_[c].task = task;
    else
      clients_[c].changes.insert(
          {now + population_.transition_delay({c}, task), client_change::entered_task, task.value});
}

virtual_time reference_clients::next_change() const {
  auto next = never;
  for (const auto& client : clients_)
    if (!client.changes.empty())
      next = std::min(next, std::get<virtual_time>(*client.changes.begin()));
  return next;
}

std::vector<reference_clients::make_change> reference_clients::change_until(virtual_time now) {
  std::vector<make_change> made;
  for (;;) {
    std::optional<std::tuple<virtual_time, std::uint32_t, client_change, std::uint32_t>> first;
    for (std::uint32_t c = 0; c < clients_.size(); ++c)
      if (!clients_[c].changes.empty()) {
        const auto [at, change, task] = *clients_[c].changes.begin();
        if (at <= now && (!first || std::tuple{at, c, change, task} < *first))
          first = {at, c, change, task};
      }
    if (!first)
      return made;
    const auto [at, c, change, task] = *first;
    clients_[c].changes.erase(clients_[c].changes.begin());
    if (make({c}, change, {task}, now))
      made.push_back({{c}, change, {task}});
  }
}

/// Applies a change. Returns true if it has an effect.
bool reference_clients::make(client_id client_number, client_change change, task_id task, virtual_time now) {
  auto& client = clients_[client_number.value];
  switch (change) {
  case client_change::joined:
    client.enrolled = true;
    client.has_left = false;
    client.changes.insert({now + population_.enrolled_time(client_number, client.stays), client_change::left, 0});
    return true;
  case client_change::left:
    client.enrolled = false;
    client.has_left = true;
    if (const auto absence = population_.absence_time(client_number, client.stays++))
      client.changes.insert({now + *absence, client_change::joined, 0});
    return true;
  case client_change::entered_task:
    if (task <= client.task) // it has entered a later task before
      return false;
    client.task = task;
    return true;
  default:
    const auto window = population_.availability(client_number, now);
    client.reachable = window.within;
    client.changes.insert({window.until, window.within ? client_change::unreachable : client_change::reachable, 0});
    return true;
  }
}

membership reference_clients::member(client_id client_number) const {
  const auto& client = clients_[client_number.value];
  if (!population_.has_random_enrolment())
    return population_.member(client_number, client.task);
  return client.enrolled ? membership::active : client.has_left ? membership::left : membership::not_yet;
}

/// True if the client takes part or can still do so: it may return, or has not entered the open task yet.
bool reference_clients::may_take_part(client_id client_number) const {
  const auto& client = clients_[client_number.value];
  if (population_.has_random_enrolment())
    return !client.has_left || population_.absence_time(client_number, 0);
  return member(client_number) == membership::active || client.task < opened_;
}

std::int64_t reference_clients::enrolled() const {
  if (!population_.has_random_enrolment())
    return population_.enrolled(opened_);
  return std::count_if(clients_.begin(), clients_.end(), [](const auto& client) { return client.enrolled; });
}

bool reference_clients::may_gain_client() const {
  if (next_change() == never || !population_.changes_without_end())
    return next_change() != never;
  for (std::uint32_t c = 0; c < clients_.size(); ++c)
    if (has_rows({c}) && may_take_part({c}))
      return true;
  return false;
}

// -- work -------------------------------------------------------------------------------------------------------------

bool reference_clients::has_rows(client_id client) const {
  if (rules_.rows->central())
    return rules_.rows->size(client, opened_) > 0;
  return plan_.clients_without_rows || rules_.rows->size(client, clients_[client.value].task) > 0;
}

bool reference_clients::can_work(client_id client_number) const {
  const auto& client = clients_[client_number.value];
  const bool is_there = rules_.rows->central() || (client.reachable && member(client_number) == membership::active);
  return !client.busy && is_there && has_rows(client_number);
}

std::vector<client_id> reference_clients::drawn_for(std::int64_t places, std::uint64_t draw) const {
  std::vector<client_id> drawn, idle;
  for (std::uint32_t c = 0; c < clients_.size(); ++c)
    if (can_work({c}))
      idle.push_back({c});
  rng_stream stream(key_for({.seed = rules_.seed, .index = draw}, purpose::cohort));
  while (std::ssize(drawn) < places && !idle.empty()) {
    const auto chosen = idle.begin() + static_cast<std::ptrdiff_t>(stream.below(idle.size()));
    drawn.push_back(*chosen);
    idle.erase(chosen);
  }
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

std::vector<client_id> reference_clients::choose_cohort(round_id round) const {
  const auto free = [&](client_id client) { return can_work(client); };
  if (rules_.rows->central())
    return draw_cohort({}, 1, 1, free);
  const bool everybody = plan_.all_enrolled || rules_.rounds.cohort == 0;
  const rng_key key{.seed = rules_.seed, .task = opened_, .index = round.value};
  return draw_cohort(key_for(key, purpose::cohort), population_.size(),
                     everybody ? population_.size() : rules_.rounds.cohort, free);
}

std::vector<client_id> reference_clients::choose_observers(round_id round) const {
  if (plan_.observers == 0 || rules_.rows->central())
    return {};
  const rng_key key{.seed = rules_.seed, .task = opened_, .index = round.value};
  return draw_cohort(key_for(key, purpose::observers), population_.size(), plan_.observers,
                     [&](client_id client) { return can_work(client); });
}

std::uint32_t reference_clients::begin_visit(client_id client) {
  clients_[client.value].busy = true;
  return clients_[client.value].visits++;
}

} // namespace mneme::test
