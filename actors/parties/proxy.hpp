/// proxy: actor that hosts the proxy half of a method and runs its steps one at a time.
#pragma once
#include "actors/parties/party_host.hpp"
namespace mneme {

class proxy_state {
public:
  static constexpr const char* name = "mneme.proxy";
  proxy_state(party_actor::pointer self, const party_setup& setup);
  party_actor::behavior_type make_behavior();

private:
  caf::result<step_taken> advise_on_model(take_step& in);
  [[nodiscard]] step_taken answer_of(const tensors_ref& advice) const;

  party_actor::pointer self_;
  run_context_ref context_;
  party_host<proxy_half, &proxy_half::receive> party_;
  tensors_ref model_; // keeps the model's tensors alive during a step
};

} // namespace mneme
