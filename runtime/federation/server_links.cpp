#include "runtime/federation/server_links.hpp"
namespace mneme {
namespace {

constexpr link_direction directions[] = {link_direction::up, link_direction::down};

} // namespace

void server_links::begin(link_direction direction, const assignment_in_flight& owner, std::int64_t bytes) {
  MNEME_CHECK(share(direction), owner.id.value);
  auto& over = link(direction);
  over.move_to(clock_.now());
  const auto [mbit, until] = settings_.clients->devices().client_mbit(owner.client, direction, clock_.now());
  over.add({.owner = owner.id,
            .client = owner.client,
            .bits_left = 8.0 * static_cast<double>(bytes),
            .client_mbit = mbit,
            .client_rate_until = until});
  expect_change();
}

void server_links::abandon(const std::vector<assignment_id>& ids) {
  for (const auto direction : directions) {
    if (!share(direction))
      continue;
    auto& over = link(direction);
    over.move_to(clock_.now());
    for (const auto id : ids)
      over.erase(id);
  }
  expect_change();
}

std::vector<server_links::ended_transfer> server_links::take_ended() {
  if (expected_at_ <= clock_.now())
    expected_at_ = never;
  std::vector<ended_transfer> ended;
  for (const auto direction : directions) {
    if (!share(direction))
      continue;
    auto& over = link(direction);
    over.move_to(clock_.now());
    over.renew(*settings_.clients, direction);
    for (const auto& transfer : over.take_ended())
      ended.push_back({direction, transfer.owner});
  }
  expect_change();
  return ended;
}

/// Schedules the next rate change. An outdated event may remain in the queue; it has no effect.
void server_links::expect_change() {
  for (const auto direction : directions)
    if (const auto next = link(direction).next_change(); next < expected_at_) {
      expected_at_ = next;
      clock_.schedule_link_change(std::max(next, clock_.now()));
    }
}

void server_links::persist(archive& state) {
  for (auto& over : links_)
    state(over);
  state(expected_at_);
}

bool server_links::is_valid(in_flight_table& in_flight) const {
  for (const auto& over : links_)
    for (const auto& transfer : over.transfers())
      if (const auto* const owner = in_flight.find(transfer.owner); !owner || owner->client != transfer.client)
        return false;
  return true;
}

} // namespace mneme
