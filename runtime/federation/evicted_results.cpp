#include "runtime/federation/evicted_results.hpp"
#include <algorithm>
namespace mneme {
namespace {

/// Assignments in one phase, the one whose upload arrives first at the front.
std::vector<assignment_id> by_arrival(in_flight_table& table, flight_phase phase, const population& clients) {
  std::vector<std::pair<virtual_time, assignment_id>> arrivals;
  for (const auto id : table.ids())
    if (const auto& found = table.at(id); found.phase == phase)
      arrivals.emplace_back(found.horizon + clients.upload_time(found.client, found.upload_bytes), id);
  std::sort(arrivals.begin(), arrivals.end());
  std::vector<assignment_id> ids;
  for (const auto& [at, id] : arrivals)
    ids.push_back(id);
  return ids;
}

} // namespace

bool evicted_results::evict(in_flight_table& table, const population& clients) {
  auto kept_bytes = std::exchange(wave_delivered_bytes_, 0);
  if (kept_bytes + held_bytes_ <= bytes_max_ || !results_are_repeatable_)
    return false;
  for (const auto id : by_arrival(table, flight_phase::finished, clients)) {
    auto& owner = table.at(id);
    kept_bytes += owner.upload_bytes;
    if (kept_bytes <= bytes_max_)
      continue;
    removed(owner);
    owner.result = {};
    owner.phase = flight_phase::evicted;
    table.release_outcomes(owner);
  }
  return true;
}

std::vector<assignment_id> evicted_results::to_recompute(assignment_id top, in_flight_table& table,
                                                         const population& clients) const {
  std::vector<assignment_id> chosen{top};
  auto bytes = held_bytes_ + table.at(top).upload_bytes;
  for (const auto id : by_arrival(table, flight_phase::evicted, clients)) {
    const auto more = table.at(id).upload_bytes;
    if (id == top || bytes + more > bytes_max_)
      continue;
    bytes += more;
    chosen.push_back(id);
  }
  return chosen;
}

} // namespace mneme
