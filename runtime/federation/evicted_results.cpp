#include "runtime/federation/evicted_results.hpp"
#include <algorithm>
namespace mneme {
namespace {

/// Order of uploads that arrive at the same time. They are delivered in the order in which they were sent, which
/// follows from the ends of their earlier stages. An event that is already in the queue precedes events of the same
/// time that are not scheduled yet.
bool is_delivered_before(const assignment_in_flight& a, const assignment_in_flight& b) {
  const auto ends_a = a.stage_events(), ends_b = b.stage_events();
  const auto [of_a, of_b] = std::mismatch(ends_a.begin(), ends_a.end(), ends_b.begin(), ends_b.end());
  if (of_a != ends_a.end() && of_b != ends_b.end())
    return *of_a < *of_b;
  if (of_a == ends_a.end() && of_b == ends_b.end())
    return a.event_sequence < b.event_sequence;
  return of_a == ends_a.end();
}

/// Time of delivery. The upload counts as delivered when the parts for all parties have arrived.
virtual_time delivered_at(const assignment_in_flight& owner, const population& clients) {
  auto latest = owner.sent_at();
  for (std::size_t p = 0; p < parties.size(); ++p)
    if (p == index_of(party_id::server) || owner.sends[p] > 0)
      latest = std::max(latest, owner.sent_at() + upload_time(clients, static_cast<party_id>(p),
                                                              owner.sent_to(static_cast<party_id>(p))));
  return latest;
}

/// Assignments in one phase, ordered by delivery.
std::vector<assignment_id> by_delivery(in_flight_table& table, assignment_phase phase, const population& clients) {
  std::vector<std::pair<virtual_time, const assignment_in_flight*>> arrivals;
  for (const auto id : table.ids())
    if (const auto& entry = table.at(id); entry.phase == phase)
      arrivals.emplace_back(delivered_at(entry, clients), &entry);
  std::sort(arrivals.begin(), arrivals.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : is_delivered_before(*a.second, *b.second);
  });
  std::vector<assignment_id> ids;
  for (const auto& [at, entry] : arrivals)
    ids.push_back(entry->id);
  return ids;
}

} // namespace

bool evicted_results::evict(in_flight_table& table, const population& clients) {
  auto kept_bytes = std::exchange(wave_delivered_bytes_, 0);
  if (kept_bytes + held_bytes_ <= bytes_max_ || !results_are_repeatable_)
    return false;
  for (const auto id : by_delivery(table, assignment_phase::finished, clients)) {
    auto& owner = table.at(id);
    kept_bytes += bytes_of(owner);
    if (kept_bytes <= bytes_max_)
      continue;
    removed(owner);
    owner.result = {};
    owner.phase = assignment_phase::evicted;
    table.release_outcomes(owner);
  }
  return true;
}

std::vector<assignment_id> evicted_results::to_recompute(assignment_id top, in_flight_table& table,
                                                         const population& clients) const {
  std::vector<assignment_id> chosen{top};
  auto bytes = held_bytes_ + bytes_of(table.at(top));
  for (const auto id : by_delivery(table, assignment_phase::evicted, clients)) {
    const auto more = bytes_of(table.at(id));
    if (id == top || bytes + more > bytes_max_)
      continue;
    bytes += more;
    chosen.push_back(id);
  }
  return chosen;
}

} // namespace mneme
