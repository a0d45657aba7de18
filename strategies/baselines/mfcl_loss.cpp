#include "strategies/baselines/mfcl_loss.hpp"
#include "runtime/models/function.hpp"
#include "strategies/shared/row_losses.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
namespace mneme {
loss_ref mfcl_objective(std::int64_t old_classes, const mfcl_weights& weights) {
  return differentiable_objective(
      {.identity = fmt::format("mfcl {} {} {}", old_classes, weights.head, weights.features),
       .terms = {"cross_entropy", "head_cross_entropy", "feature_distillation"},
       .reads_features = true,
       .reads_head_logits = true},
      [old_classes, weights](const loss_rows& in) -> std::vector<at::Tensor> {
        const auto &teacher = in.teachers[0].logits, weight = in.equal_weight();
        const auto labels = at::where(in.is_replayed, teacher.argmax(1), in.labels);

        const auto fresh = in.logits.narrow(1, old_classes, in.logits.size(1) - old_classes);
        const auto of_task = cross_entropy_rows(fresh, (labels - old_classes).clamp_min(0));
        const auto of_head = cross_entropy_rows(in.head_logits, labels);

        const auto device = in.features.device();
        const auto weight_of_old = in.auxiliary->at(old_head_weight).to(device).unsqueeze(0);
        const auto old_logits = stacked_product(in.features.unsqueeze(0), weight_of_old)[0] + // [R, O]
                                in.auxiliary->at(old_head_bias).to(device);
        const auto distance = (old_logits - teacher).square().sum(1) / static_cast<double>(old_classes);
        return {of_task.masked_fill(in.is_replayed, 0.0), weighted_sum(of_head, weight) * weights.head,
                weighted_sum(distance, weight) * weights.features};
      });
}

tensors_ref old_head(const model& net, const at::Tensor& flat, std::int64_t old) {
  auto head = std::make_shared<tensor_map>();
  for (const auto& entry : net.layout())
    if (entry.head)
      head->put(entry.shape.size() > 1 ? old_head_weight : old_head_bias,
                as_in_files(flat, entry).narrow(0, 0, old).contiguous());
  return head;
}

} // namespace mneme
