// The scheduler without rounds that wait: clients are sent off again as they finish, and the server steps as uploads
// come (design, section 5). A round is what lies between two server steps.
#include "actors/scheduler/scheduler.hpp"
#include "runtime/population/staleness.hpp"
#include <algorithm>
#include <cmath>
namespace mneme {

/// FedAsync steps with every upload.
std::int64_t scheduler_state::uploads_of_step() const noexcept {
  const auto& rounds = world_->what.rounds;
  return rounds.aggregation == aggregation_kind::fedasync ? 1 : rounds.buffer;
}

/// Gives work to as many idle clients as there are places. What is left free is filled when somebody becomes idle.
void scheduler_state::fill_places() {
  const auto places = world_->what.rounds.concurrency - static_cast<std::int64_t>(flights_.size());
  for (const auto who : drawn_from_idle(places))
    dispatch(who);
  wants_clients_ = places > 0 && flights_.size() == 0;
}

/// Uniform without replacement, ascending: by rank among the idle, so who came before whom decides nothing.
std::vector<client_id> scheduler_state::drawn_from_idle(std::int64_t wanted) {
  std::vector<client_id> drawn;
  const auto count = std::min(wanted, idle_.size());
  if (count <= 0)
    return drawn;
  const rng_key key{.seed = static_cast<std::uint64_t>(world_->what.seed), .index = next_assignment_};
  rng_stream stream(key_for(key, purpose::cohort));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto who = idle_.nth(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(idle_.size()))));
    idle_.put(who, false);
    drawn.push_back(who);
  }
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

/// A new task changes who has rows, and who is enrolled.
void scheduler_state::list_idle() {
  if (!is_async())
    return;
  for (std::uint32_t c = 0; c < clients_.size(); ++c)
    idle_.put({c}, available({c}));
}

/// The client is at its first job, and will not see its end.
void scheduler_state::begin_to_vanish(flight& one) {
  record("client", "start", one.client);
  const auto visit = clients_[one.client.value].visits - 1;
  const auto stage = one.stages.empty() ? virtual_duration{0} : one.stages.front();
  const auto share = world_->people->vanishing_point(one.client, visit);
  const virtual_duration left(static_cast<std::int64_t>(std::ceil(share * static_cast<double>(stage.count()))));
  queue_.push(queue_.now() + left, {.what = event::kind::drop_out, .flight = one.id, .round = one.round});
}

void scheduler_state::vanish(flight& one) {
  ++report_.dropped;
  abandon_flights({one.id}, "drop_out");
  fill_places();
}

delivery scheduler_state::delivery_of(const flight& one, client_result result) const {
  delivery made{.assignment = one.id,
                .from = one.client,
                .started_from = one.round,
                .upload = std::move(result.upload),
                .rows = result.rows};
  if (is_async()) {
    made.start = one.in->weights;
    made.staleness = std::int64_t{place_.round.value} - std::int64_t{one.round.value};
    made.staleness_weight = staleness_weight(world_->what.rounds, made.staleness);
  }
  return made;
}

} // namespace mneme
