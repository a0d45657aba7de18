#include "strategies/baselines/old_model_distillation.hpp"
#include "strategies/shared/row_losses.hpp"
#include <fmt/format.h>
namespace mneme {

// Axes: C classes seen so far, O of them old.

loss_ref distillation_objective(std::int64_t old_classes, const distillation_options& options) {
  return differentiable_objective(
      {.identity = fmt::format("lwf {} {} {}", old_classes, options.weight, options.temperature),
       .terms = {"cross_entropy", "distillation"},
       .reads_label_smoothing = true},
      [old_classes, options](const loss_rows& in) -> std::vector<at::Tensor> {
        const auto fresh = in.logits.narrow(1, old_classes, in.logits.size(1) - old_classes);
        const auto labels = (in.labels - old_classes).clamp_min(0);
        const auto of_labels = cross_entropy_rows(fresh, labels, in.label_smoothing);
        return {of_labels.masked_fill(in.labels < old_classes, 0.0),
                old_class_distillation(in.logits, in.teachers[0].logits, {.temperature = options.temperature}) *
                    options.weight};
      });
}

void distill_old_classes(train_job& job, const broadcast& in, const distillation_options& options) {
  if (!in.extra || in.info.current_classes.low == 0)
    return;
  job.add_teacher(in.extra, {.classes = {0, in.info.current_classes.low}});
  job.objective = distillation_objective(in.info.current_classes.low, options);
}

task<task_plan> teacher_server::open_task(server_context&, const round_info& info) {
  if (info.task.value > 0)
    teacher_ = weights_only(weights());
  co_return task_plan{};
}

broadcast teacher_server::open_round(const round_info& info) {
  auto sent = averaging_server::open_round(info);
  sent.extra = teacher_;
  return sent;
}

void teacher_server::persist(archive& state) {
  averaging_server::persist(state);
  state(teacher_);
}

} // namespace mneme
