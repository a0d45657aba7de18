#include "strategies/baselines/target_loss.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <fmt/format.h>
namespace mneme {
namespace {

class target_loss final : public stepwise_loss {
public:
  target_loss(std::int64_t old_classes, double weight, double temperature)
      : stepwise_loss(fmt::format("target {} {} {}", old_classes, weight, temperature),
                      {"cross_entropy", "distillation"}),
        old_(old_classes), weight_(weight), rule_{.temperature = temperature} {}
  [[nodiscard]] bool reads_label_smoothing() const override { return true; }

protected:
  void add_model(const model_step& in, const model_losses& out) const override {
    const auto rows = in.logits.size(0), fresh = in.logits.size(1) - old_;
    const auto is_replayed = at::arange(rows, in.labels.options()) >= rows - in.replayed; // [B]
    auto own = in, replayed = in;
    own.padded = in.padded.logical_or(is_replayed);
    replayed.padded = in.padded.logical_or(is_replayed.logical_not());
    out.add(0, own, cross_entropy_rows(in.logits.narrow(1, old_, fresh), in.labels - old_, in.label_smoothing), 1.0,
            old_);
    out.add(1, replayed, distilled_rows(in.logits.narrow(1, 0, old_), in.teacher.narrow(1, 0, old_), rule_), weight_);
  }

private:
  std::int64_t old_;
  double weight_;
  distillation_rule rule_; // its form is cross-entropy
};

} // namespace

loss_ref target_objective(std::int64_t old_classes, double weight, double temperature) {
  return std::make_shared<target_loss>(old_classes, weight, temperature);
}

} // namespace mneme
