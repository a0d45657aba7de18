/// proxy: hosts the proxy half of a method that has one, one step at a time.
#pragma once
#include "actors/compute/step_host.hpp"
namespace mneme {

class proxy_state {
public:
  static constexpr const char* name = "mneme.proxy";
  proxy_state(proxy_actor::pointer self, run_context_ref context, const std::shared_ptr<batch_queues>& queues,
              std::vector<worker_actor> workers, const recorder_actor& recorder);
  proxy_actor::behavior_type make_behavior();

private:
  caf::result<advised> look_at_model(advise& in);
  [[nodiscard]] advised answer_of(tensors_ref advice) const;

  proxy_actor::pointer self_;
  run_context_ref context_;
  step_host steps_;
  std::unique_ptr<proxy_half> half_;
  tensors_ref model_; // which the step at work refers to
};

} // namespace mneme
