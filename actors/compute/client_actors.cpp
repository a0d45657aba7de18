#include "actors/compute/client_actors.hpp"
#include "actors/compute/client.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

class client_actors::hosted final : public client_handle {
public:
  hosted(client_actors& host, client_actor actor) : host_(host), actor_(std::move(actor)) {}
  void resume(outcomes results) override {
    host_.unit_.run_inside([&] { host_.worker_->send(actor_, job_outcomes{.results = std::move(results)}); });
  }
  void abandon() override {
    host_.unit_.run_inside([&] { host_.worker_->send_exit(actor_, caf::exit_reason::kill); });
  }

private:
  client_actors& host_;
  client_actor actor_;
};

client_actors::client_actors(worker_actor::pointer worker, shard_id home, const run_context& run)
    : worker_(worker), shard_(home), run_(run), unit_(*worker) {}

std::unique_ptr<client_handle> client_actors::start(assignment assigned) {
  auto actor = unit_.run_inside([&] {
    using client = client_actor::stateful_impl<client_state>;
    return worker_->spawn<client, caf::hidden>(worker_actor{worker_}, shard_, std::cref(run_), std::move(assigned));
  });
  return std::make_unique<hosted>(*this, std::move(actor));
}

} // namespace mneme
