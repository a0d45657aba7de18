#include "runtime/method/client_round_runner.hpp"
#include <stdexcept>
namespace mneme {

client_round_runner::client_round_runner(const strategy& method, assignment assigned, generated_row_store* store)
    : assigned_(std::move(assigned)), channel_(assigned_.id), context_(channel_, assigned_, store),
      round_(assigned_.observes ? method.client_observe(context_, *assigned_.in)
                                : method.client_round(context_, *assigned_.in)) {}

template <class Act>
round_step client_round_runner::advance(Act act) {
  round_step next;
  const auto failure = catch_step_failure([&] {
    act();
    if (!round_.done()) {
      next = channel_.take_plan();
      return;
    }
    auto result = round_.take();
    if (assigned_.observes && (result.upload || result.to_proxy))
      throw std::logic_error("client_observe() returned an upload; an observing client may only change its memory");
    result.losses = std::move(losses_);
    next = std::move(result);
  });
  if (failure)
    next = round_failure{.last_job = failure->job.value_or(job_id{assigned_.id, channel_.stage(), 0}),
                         .client = assigned_.client,
                         .round = assigned_.in->info.round,
                         .reason = failure->text};
  return next;
}

round_step client_round_runner::start() {
  return advance([&] { round_.start(); });
}

/// Records the training losses of finished jobs. Jobs that return only gradients or row norms are not counted.
void client_round_runner::record_losses(const outcomes& results) {
  for (const auto& result : results) {
    const auto* const output = std::get_if<work_output>(&result);
    if (!output)
      continue;
    if (const auto* const trained = std::get_if<train_output>(output); trained && trained->weights)
      record_losses(*trained);
    if (const auto* const ran = std::get_if<program_output>(output); ran && ran->out)
      record_program_losses(*ran->out);
  }
}

void client_round_runner::record_losses(const train_output& trained) {
  if (trained.rows_seen == 0)
    return;
  if (trained.several_terms)
    losses().add(trained.rows_seen, trained.loss_mean, *trained.several_terms);
  else if (trained.loss_name)
    losses().add(trained.rows_seen, trained.loss_mean, trained.loss_name);
}

/// Records the losses that a program returns under the name training_loss_tensor.
void client_round_runner::record_program_losses(const tensor_map& outcome) {
  const auto* const whole = outcome.find(training_loss_tensor);
  if (!whole || whole->numel() != 1 || assigned_.samples.size() == 0)
    return;
  const auto prefix = std::string(training_loss_tensor) + ".";
  std::map<std::string, double> terms;
  for (const auto& [name, value] : outcome)
    if (name.starts_with(prefix) && value.numel() == 1)
      terms[name.substr(prefix.size())] = value.item<double>();
  losses().add(assigned_.samples.size(), whole->item<double>(), terms);
}

training_losses& client_round_runner::losses() {
  if (!losses_)
    losses_ = std::make_shared<training_losses>();
  return *losses_;
}

round_step client_round_runner::resume(outcomes results) {
  record_losses(results);
  return advance([&] { channel_.answer(std::move(results)); });
}

} // namespace mneme
