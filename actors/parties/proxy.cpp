#include "actors/parties/proxy.hpp"
#include "actors/parties/finite_step.hpp"
#include "runtime/method/transfer_encoding.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

proxy_state::proxy_state(party_actor::pointer self, const party_setup& setup)
    : self_(self), context_(setup.run), party_(self, setup, party_id::proxy, setup.run->method->make_proxy()) {}

party_actor::behavior_type proxy_state::make_behavior() {
  return {
      [this](const deliveries& in) { return party_.handle(in); },
      [this](take_step& in) { return advise_on_model(in); },
      [this](save_model) {
        return party_.steps().is_interrupted() ? final_model{}
                                               : final_model{.summary_metrics = party_.half().summary_metrics()};
      },
      [this](save_state& in) { return party_.save(in); },
      [this](restore_state& in) { return party_.restore(in); },
      [this](batch_done& in) { party_.steps().handle(in); },
  };
}

caf::result<step_taken> proxy_state::advise_on_model(take_step& in) {
  model_ = convert_for_transfer(in.model, context_->scenario.devices.transfer_dtype,
                                context_->method->wire_layout(*context_->net));
  return party_.steps().run(
      self_->make_response_promise<step_taken>(), in.where, nullptr,
      [this](server_context& ctx, const round_info& where) { return party_.half().advise(ctx, where, model_); },
      [this](task<tensors_ref>& step) { return answer_of(step.take()); });
}

step_taken proxy_state::answer_of(const tensors_ref& advice) const {
  expect_finite(*context_, "the advice", advice);
  const auto format = context_->scenario.devices.transfer_dtype;
  step_taken answer{.advice = convert_for_transfer(advice, format, context_->method->wire_layout(*context_->net)),
                    .advice_bytes = wire_bytes(advice.get(), format),
                    .model_bytes = wire_bytes(model_.get(), format)};
  if (answer.advice)
    answer.digest = digest_of(*answer.advice);
  return answer;
}

} // namespace mneme
