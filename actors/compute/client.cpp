#include "actors/compute/client.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

client_state::client_state(client_actor::pointer self, worker_actor host, shard_id home, const run_context& run,
                           assignment assigned)
    : self_(self), host_(std::move(host)), shard_(home),
      round_(*run.method, std::move(assigned), run.generated_rows.get()) {}

client_actor::behavior_type client_state::make_behavior() {
  answer(round_.start());
  return {[this](job_outcomes& in) { answer(round_.resume(std::move(in.results))); }};
}

void client_state::answer(round_step step) {
  const bool over = !std::holds_alternative<plan>(step);
  self_->send(host_, round_progress{.to = shard_, .id = round_.assigned().id, .step = std::move(step)});
  if (over)
    self_->quit();
}

} // namespace mneme
