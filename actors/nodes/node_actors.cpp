#include "actors/nodes/node_actors.hpp"
#include "actors/compute/worker.hpp"
#include "actors/run/process.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

node_actors::node_actors(const run_context_ref& context, node_gateway_hooks hooks, bool are_measured) {
  configure(config_, 1, {.measures_actors = are_measured});
  system_ = std::make_unique<caf::actor_system>(config_);
  forget_settings(config_);
  uplink_ = system_->spawn<node_gateway_actor::stateful_impl<node_gateway_state>>(context, std::move(hooks));
  const auto count = [](std::int64_t number) { return static_cast<std::size_t>(number); };
  queues_ = std::make_shared<batch_queues>(count(context->shards), count(context->workers), count(context->hosts));
  for (std::uint32_t w = 0; w < context->workers; ++w)
    workers_.push_back(
        system_->spawn<worker_actor::stateful_impl<worker_state>, caf::detached>(worker_id{w}, context, queues_));
  const worker_links peers{.scheduler = uplink_, .workers = workers_};
  for (const auto& worker : workers_)
    caf::anon_send(worker, peers);
  caf::anon_send(uplink_, peers);
}

node_actors::~node_actors() {
  caf::anon_send_exit(uplink_, caf::exit_reason::user_shutdown);
  for (const auto& worker : workers_)
    caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
  uplink_ = nullptr;
  workers_.clear();
  system_.reset();
}

void node_actors::take(archive::buffer message) { caf::anon_send(uplink_, node_frame{.content = std::move(message)}); }

} // namespace mneme
