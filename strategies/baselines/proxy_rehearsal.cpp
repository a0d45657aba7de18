#include "strategies/baselines/proxy_rehearsal.hpp"
#include "strategies/shared/training_keys.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
namespace mneme {

// -- the loss ---------------------------------------------------------------------------------------------------------

at::Tensor nca_rows(const at::Tensor& logits, const at::Tensor& labels) {
  const auto own = labels.unsqueeze(1);
  const auto lower = logits - logits.amax(1, true);
  const auto others = lower.exp().scatter(1, own, 0.0).sum(1, true);
  return ((others + 1.0).log() - lower.gather(1, own)).squeeze(1);
}

namespace {

/// |x / |x| - t / |t|| along the last axis, with t = teacher_output. The gradient is 0 where the two are equal.
at::Tensor unit_distances(const at::Tensor& x, const at::Tensor& teacher_output) {
  constexpr double length_min = 1e-12;
  const auto unit = [](const at::Tensor& rows) { return rows / rows.norm(2, {-1}, true).clamp_min(length_min); };
  return (unit(x) - unit(teacher_output)).norm(2, {-1});
}

} // namespace

at::Tensor pooled_map_rows(const at::Tensor& map, const at::Tensor& teacher_output) {
  const auto pooled = [](const at::Tensor& whole) {
    const auto squares = whole.square();
    return at::cat({squares.sum(3).flatten(1), squares.sum(2).flatten(1)}, 1); // [R, C h + C w]
  };
  return unit_distances(pooled(map), pooled(teacher_output));
}

at::Tensor channel_rows(const at::Tensor& map, const at::Tensor& teacher_output, const at::Tensor& weight) {
  const auto distances = unit_distances(map.square().flatten(2), teacher_output.square().flatten(2)); // [R, C]
  return (distances * weight).mean(1);
}

loss_ref nca_objective() {
  return differentiable_objective({.identity = "nca", .terms = {"nca"}},
                                  [](const loss_rows& in) { return std::vector{nca_rows(in.logits, in.labels)}; });
}

// -- the method's parts -----------------------------------------------------------------------------------------------

method_needs proxy_rehearsal::needs() const {
  auto needed = rehearsing_method::needs();
  needed.head = head_kind::proxies;
  needed.proxies = proxies_.proxies;
  needed.signed_features = true;
  needed.round_barrier = true;
  return needed;
}

void proxy_rehearsal::proxy_keys(key_table& table) {
  table.integer("proxies", proxies_.proxies, {.low = 1, .high = 1000}, "Number of proxies per class.");
  table.integer("tuning_epochs", proxies_.tuning_epochs, {.low = 0, .high = 100'000},
                "Epochs of the head on balanced rows, in the last round of every task except the first.");
  table.number("tuning_rate", proxies_.tuning_rate, {.low = 0.0, .open_low = true},
               "Learning rate of the tuning (tuning_epochs).");
}

diagnostics proxy_rehearsal::check(const method_setup& setup) const {
  auto errors = rehearsing_method::check(setup);
  append(errors,
         reject_label_smoothing(setup, "its loss compares rows with proxies of classes and has no cross-entropy"));
  if (setup.net->maps().empty())
    errors.push_back(
        {"model.name",
         fmt::format("'{}' has no feature maps of stages to distill; expected a residual net", setup.net->identity())});
  if (setup.trainable != trainable_part::all)
    errors.push_back(
        {"model.trainable",
         "model.trainable: the method distills features of the body, which would not change; expected \"all\""});
  return errors;
}

void proxy_rehearsal::prepare(const method_setup& setup) {
  rehearsing_method::prepare(setup);
  nca_ = nca_objective();
  for (const auto& name : setup.net->maps())
    if (name != "stem")
      maps_.push_back(name);
}

train_job proxy_rehearsal::proxy_training(const client_context& ctx, const broadcast& in, const rehearsal_state& now,
                                          loss_ref objective, bool distils) const {
  auto job = training(ctx, in, now, now.all_rows());
  job.options.held_classes = now.classes.old();
  if (job.teachers.empty() || !distils) {
    job.remove_teachers();
    job.objective = nca_;
    return job;
  }
  job.objective = std::move(objective);
  job.options.teachers = {{.features = true}};
  job.options.maps = maps_;
  return job;
}

task<tensors_ref> proxy_rehearsal::tune_head(client_context& ctx, const broadcast& in, const rehearsal_state& now,
                                             tensors_ref weights) const {
  if (!now.is_last || now.classes.old() == 0 || proxies_.tuning_epochs == 0 || now.all_rows().empty())
    co_return weights;
  auto balancing = choose_balanced_rows(ctx, now, weights);
  const auto rows = co_await balancing;
  auto job = training(ctx, in, now, rows);
  job.start = weights;
  job.remove_teachers();
  job.objective = nca_;
  job.options.trained = trainable_part::head;
  job.options.epochs = job.options.epochs == 0 ? 0 : proxies_.tuning_epochs;
  job.options.learning_rate = proxies_.tuning_rate;
  job.stream.visit += 1U << 24U; // no round has this visit number, so the tuning gets its own shuffle
  auto tuning = ctx.train(std::move(job));
  const auto tuned = co_await tuning;
  co_return tuned.weights;
}

} // namespace mneme
