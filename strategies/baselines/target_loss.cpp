#include "strategies/baselines/target_loss.hpp"
#include "strategies/shared/row_losses.hpp"
#include <fmt/format.h>
namespace mneme {
loss_ref target_objective(std::int64_t old_classes, double weight, double temperature) {
  return differentiable_objective(
      {.identity = fmt::format("target {} {} {}", old_classes, weight, temperature),
       .terms = {"cross_entropy", "distillation"},
       .reads_label_smoothing = true},
      [=](const loss_rows& in) -> std::vector<at::Tensor> {
        const auto fresh = in.logits.narrow(1, old_classes, in.logits.size(1) - old_classes);
        const auto labels = (in.labels - old_classes).clamp_min(0); // replayed rows have old classes
        const auto of_labels = cross_entropy_rows(fresh, labels, in.label_smoothing);
        const auto of_teacher = old_class_distillation(in.logits, in.teachers[0].logits, {.temperature = temperature});
        return {of_labels.masked_fill(in.is_replayed, 0.0),
                of_teacher.masked_fill(in.is_replayed.logical_not(), 0.0) * weight};
      });
}

} // namespace mneme
