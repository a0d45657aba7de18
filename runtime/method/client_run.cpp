#include "runtime/method/client_run.hpp"
#include <stdexcept>
namespace mneme {

client_run::client_run(const strategy& method, assignment assigned, row_store* store)
    : assigned_(std::move(assigned)), desk_(assigned_.id), context_(desk_, assigned_, store),
      round_(assigned_.looks ? method.client_look(context_, *assigned_.in)
                             : method.client_round(context_, *assigned_.in)) {}

template <class Act>
round_step client_run::advance(Act act) {
  round_step next;
  const auto failure = step_failure_of([&] {
    act();
    if (!round_.done()) {
      next = desk_.take_plan();
      return;
    }
    auto result = round_.take();
    if (assigned_.looks && (result.upload || result.to_proxy))
      throw std::logic_error("client_look() sends something; what it finds goes into the client's memory");
    result.losses = std::move(losses_);
    next = std::move(result);
  });
  if (failure)
    next = round_failure{.last_job = failure->job.value_or(job_id{assigned_.id, desk_.stage(), 0}),
                         .client = assigned_.client,
                         .round = assigned_.in->place.round,
                         .reason = failure->text};
  return next;
}

round_step client_run::start() {
  return advance([&] { round_.start(); });
}

/// Records the training losses of finished jobs. Jobs that return only gradients or row norms are not counted.
void client_run::note_losses(const outcomes& results) {
  for (const auto& result : results) {
    const auto* const output = std::get_if<work_output>(&result);
    if (!output)
      continue;
    if (const auto* const trained = std::get_if<train_output>(output); trained && trained->weights)
      note_losses(*trained);
    if (const auto* const ran = std::get_if<program_output>(output); ran && ran->out)
      note_losses_of_program(*ran->out);
  }
}

void client_run::note_losses(const train_output& trained) {
  if (trained.rows_seen == 0)
    return;
  if (trained.several_terms)
    losses().add(trained.rows_seen, trained.loss_mean, *trained.several_terms);
  else if (trained.loss_name)
    losses().add(trained.rows_seen, trained.loss_mean, trained.loss_name);
}

/// Records the losses that a program returns under the name training_loss_tensor.
void client_run::note_losses_of_program(const tensor_map& outcome) {
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

training_losses& client_run::losses() {
  if (!losses_)
    losses_ = std::make_shared<training_losses>();
  return *losses_;
}

round_step client_run::resume(outcomes results) {
  note_losses(results);
  return advance([&] { desk_.answer(std::move(results)); });
}

} // namespace mneme
