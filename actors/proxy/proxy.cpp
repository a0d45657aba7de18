#include "actors/proxy/proxy.hpp"
#include "actors/compute/wake.hpp"
#include "runtime/method/wire.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

proxy_state::proxy_state(proxy_actor::pointer self, run_context_ref context,
                         const std::shared_ptr<batch_queues>& queues, std::vector<worker_actor> workers,
                         const recorder_actor& recorder)
    : self_(self), context_(std::move(context)),
      steps_(*context_, "proxy",
             {.put =
                  [self, queues, workers = std::move(workers)](std::vector<ready_batch> batches) {
                    put_and_wake(self, *queues, workers, queues->proxy_queue(), std::move(batches));
                  },
              .warn = [self, recorder](std::string text) { self->send(recorder, run_warning{std::move(text)}); }}),
      half_(context_->method->make_proxy()) {
  MNEME_CHECK(half_ != nullptr); // the method says that it has one
}

proxy_actor::behavior_type proxy_state::make_behavior() {
  return {
      [this](const receive& in) -> caf::result<void> {
        try {
          for (const auto& sent : in.sent)
            half_->receive(sent);
          return {};
        } catch (const std::exception& e) {
          return steps_.error_in("receiving", e.what());
        }
      },
      [this](advise& in) { return look_at_model(in); },
      [this](tell_figures) { return steps_.is_interrupted() ? proxy_figures{} : proxy_figures{half_->figures()}; },
      [this](save_proxy& in) -> caf::result<saved_proxy> {
        try {
          half_->persist(in.so_far.section("proxy half"));
          return saved_proxy{.state = std::move(in.so_far)};
        } catch (const std::exception& e) {
          return steps_.error_in("saving its state", e.what());
        }
      },
      [this](restore_proxy& in) -> caf::result<restored_proxy> {
        try {
          half_->persist(in.rest.section("proxy half"));
          return restored_proxy{.rest = std::move(in.rest)};
        } catch (const archive_error& e) {
          return steps_.error_in("going on from a checkpoint", std::string("it ") + e.what());
        } catch (const std::exception& e) {
          return steps_.error_in("going on from a checkpoint", e.what());
        }
      },
      [this](batch_done& in) { steps_.take(in); },
  };
}

caf::result<advised> proxy_state::look_at_model(advise& in) {
  model_ = across_the_wire(in.model, context_->scenario.devices.wire, context_->method->wire_layout(*context_->net));
  return steps_.run(
      self_->make_response_promise<advised>(), in.where, nullptr,
      [this](server_context& ctx, const round_place& where) { return half_->advise(ctx, where, model_); },
      [this](task<tensors_ref>& step) { return answer_of(step.take()); });
}

advised proxy_state::answer_of(tensors_ref advice) const {
  const auto format = context_->scenario.devices.wire;
  advised answer{.advice_bytes = wire_bytes(advice.get(), format), .model_bytes = wire_bytes(model_.get(), format)};
  answer.advice = across_the_wire(advice, format, context_->method->wire_layout(*context_->net));
  if (answer.advice)
    answer.digest = digest_of(*answer.advice);
  return answer;
}

} // namespace mneme
