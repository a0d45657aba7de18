#include "runtime/federation/shared_link.hpp"
#include <algorithm>
#include <cmath>
#include <numeric>
namespace mneme {
namespace {

constexpr double bits_per_ns_of_mbit = 1e-3;

} // namespace

void shared_link::move_to(virtual_time now) {
  MNEME_CHECK(now >= at_, in_seconds(now), in_seconds(at_));
  const auto passed_ns = static_cast<double>((now - at_).count());
  for (auto& transfer : transfers_)
    transfer.bits_left = transfer.ends_at <= now
                             ? 0.0
                             : std::max(transfer.bits_left - bits_per_ns_of_mbit * transfer.mbit * passed_ns, 0.0);
  at_ = now;
}

void shared_link::add(active_transfer begun) {
  transfers_.push_back(begun);
  share();
}

void shared_link::erase(assignment_id owner) {
  if (std::erase_if(transfers_, [&](const active_transfer& transfer) { return transfer.owner == owner; }) > 0)
    share();
}

std::vector<shared_link::active_transfer> shared_link::take_ended() {
  std::vector<active_transfer> ended;
  std::erase_if(transfers_, [&](const active_transfer& transfer) {
    if (transfer.bits_left > 0.0)
      return false;
    ended.push_back(transfer);
    return true;
  });
  if (!ended.empty())
    share();
  return ended;
}

void shared_link::renew(const population& clients, link_direction direction) {
  bool changed = false;
  for (auto& transfer : transfers_)
    if (transfer.client_rate_until <= at_) {
      std::tie(transfer.client_mbit, transfer.client_rate_until) =
          clients.devices().client_mbit(transfer.client, direction, at_);
      changed = true;
    }
  if (changed)
    share();
}

/// Water filling, in ascending order of the clients' own rates: each remaining transfer gets an equal part of the
/// remaining rate.
void shared_link::share() {
  std::vector<std::size_t> slowest_first(transfers_.size());
  std::iota(slowest_first.begin(), slowest_first.end(), std::size_t{0});
  std::stable_sort(slowest_first.begin(), slowest_first.end(),
                   [&](std::size_t a, std::size_t b) { return transfers_[a].client_mbit < transfers_[b].client_mbit; });
  auto mbit_left = mbit_;
  auto without_part = static_cast<double>(transfers_.size());
  for (const auto i : slowest_first) {
    auto& transfer = transfers_[i];
    transfer.mbit = std::min(transfer.client_mbit, mbit_left / without_part);
    mbit_left = std::max(mbit_left - transfer.mbit, 0.0);
    --without_part;
    const auto ns = std::ceil(transfer.bits_left / (bits_per_ns_of_mbit * transfer.mbit));
    const bool ends = transfer.bits_left <= 0.0 || ns < static_cast<double>((end_of_runs - at_).count());
    transfer.ends_at = !ends                       ? never
                       : transfer.bits_left <= 0.0 ? at_
                                                   : at_ + virtual_duration(static_cast<std::int64_t>(ns));
  }
}

virtual_time shared_link::next_change() const {
  if (transfers_.empty())
    return never;
  auto next = end_of_runs;
  for (const auto& transfer : transfers_)
    next = std::min({next, transfer.ends_at, transfer.client_rate_until});
  return next;
}

void shared_link::persist(archive& state) {
  state(at_)(transfers_);
  if (!state.loading())
    return;
  for (const auto& transfer : transfers_)
    if (!(transfer.bits_left >= 0.0) || !(transfer.client_mbit >= 0.0) || std::isinf(transfer.bits_left))
      throw archive_error("has a transfer of negative size");
  share();
}

} // namespace mneme
