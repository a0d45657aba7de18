#include "strategies/baselines/generating_server.hpp"
namespace mneme {

task<task_plan> generating_server::open_task(server_context& ctx, const round_info& info) {
  if (info.task.value > 0) {
    auto running = ctx.run(generation(info));
    const auto generated = co_await running;
    replay_ = replay_of(*generated.out);
    objective_ = generated.out->at("objective").min().item<double>();
  }
  co_return task_plan{};
}

broadcast generating_server::open_round(const round_info& info) {
  auto sent = averaging_server::open_round(info);
  sent.extra = replay_;
  return sent;
}

std::map<std::string, double> generating_server::summary_metrics() const {
  auto shown = averaging_server::summary_metrics();
  shown["generator_objective"] = objective_;
  return shown;
}

void generating_server::persist(archive& state) {
  averaging_server::persist(state);
  state(replay_)(objective_);
}

} // namespace mneme
