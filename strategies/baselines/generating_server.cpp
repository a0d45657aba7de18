#include "strategies/baselines/generating_server.hpp"
namespace mneme {

task<task_plan> generating_server::open_task(server_context& ctx, const round_place& place) {
  if (place.task.value > 0) {
    auto running = ctx.run(generation(place));
    const auto generated = co_await running;
    replay_ = replay_of(*generated.out);
    objective_ = generated.out->at("objective").min().item<double>();
  }
  co_return task_plan{};
}

broadcast generating_server::open_round(const round_place& place) {
  auto sent = averaging_server::open_round(place);
  sent.extra = replay_;
  return sent;
}

std::map<std::string, double> generating_server::figures() const {
  auto shown = averaging_server::figures();
  shown["generator_objective"] = objective_;
  return shown;
}

void generating_server::persist(archive& state) {
  averaging_server::persist(state);
  state(replay_)(objective_);
}

} // namespace mneme
