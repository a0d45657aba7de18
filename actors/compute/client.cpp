#include "actors/compute/client.hpp"
#include "runtime/method/wire.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

client_state::client_state(client_actor::pointer self, shard_actor host, const world& world, assignment what)
    : self_(self), host_(std::move(host)), world_(world), run_(*world_.method, std::move(what)) {}

client_actor::behavior_type client_state::make_behavior() {
  tell(run_.start());
  return {[this](job_outcomes& in) { tell(run_.resume(std::move(in.all))); }};
}

void client_state::tell(round_step step) {
  if (auto* result = std::get_if<client_result>(&step))
    result->upload = across_the_wire(result->upload, world_.what.devices.wire, world_.net->layout());
  const bool over = !std::holds_alternative<plan>(step);
  self_->send(host_, round_answer{.id = run_.assigned().id, .step = std::move(step)});
  if (over)
    self_->quit();
}

} // namespace mneme
