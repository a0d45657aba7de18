// The scheduler's memory for results: a client's round is often computed long before its upload arrives. What there is
// no room for is given up, and computed again from its assignment when its time has come: a round is a pure function.
#include "actors/scheduler/scheduler.hpp"
#include "actors/scheduler/scheduler_ask.hpp"
#include <algorithm>
#include <functional>
namespace mneme {

/// Bytes of uploads that may wait for their time. The default of worker.ahead_max is no order to be frugal.
std::int64_t scheduler_state::results_max() const {
  const auto stated = world_->what.worker.ahead_max.bytes, usual = worker_section{}.ahead_max.bytes;
  return stated < usual ? stated : 4 * stated;
}

/// Flights that are `wanted`, the one that arrives first at the front.
std::vector<assignment_id> scheduler_state::by_arrival(const std::function<bool(const flight&)>& wanted) {
  std::vector<std::pair<virtual_time, assignment_id>> found;
  for (const auto id : flights_.ids())
    if (const auto& one = flights_.at(id); wanted(one))
      found.emplace_back(one.horizon + world_->people->upload_time(one.client, one.upload_bytes), id);
  std::sort(found.begin(), found.end());
  std::vector<assignment_id> ids;
  for (const auto& [at, id] : found)
    ids.push_back(id);
  return ids;
}

/// Keeps what arrives first; what was delivered while the wave was out counts, as if it had waited for its end. On a
/// device whose bits depend on the batch, a second result might be another.
void scheduler_state::give_up_results() {
  const auto most = results_max();
  auto kept = std::exchange(wave_delivered_bytes_, 0);
  if (kept + result_bytes_ <= most || world_->device != "cpu")
    return;
  if (!std::exchange(told_of_recalls_, true))
    tell_recorder(run_warning{"uploads that wait for their virtual time hold more than worker.ahead_max allows; those "
                              "that arrive last are computed again, which a larger value spares"});
  for (const auto id : by_arrival([](const flight& one) { return one.result.has_value(); })) {
    auto& one = flights_.at(id);
    kept += one.upload_bytes;
    if (kept <= most)
      continue;
    result_bytes_ -= one.upload_bytes;
    one.result.reset();
    one.given_up = true;
    flights_.release_outcomes(one);
  }
}

/// Computes `top`'s result again, and those that arrive next as far as there is room.
void scheduler_state::recall(assignment_id top) {
  const auto most = results_max();
  auto held = result_bytes_;
  const auto call = [&](flight& one) {
    held += one.upload_bytes;
    one.given_up = false;
    one.stages_run = 0;
    replays_[one.id] = true;
  };
  call(flights_.at(top));
  for (const auto id : by_arrival([](const flight& one) { return one.given_up; }))
    if (auto& one = flights_.at(id); held + one.upload_bytes <= most)
      call(one);
  next_ = next_step::event;
  start_replays();
}

} // namespace mneme
