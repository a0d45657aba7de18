#include "strategies/shared/row_losses.hpp"
#include <ATen/ATen.h>
namespace mneme {

at::Tensor cross_entropy_rows(const at::Tensor& logits, const at::Tensor& labels, double smoothing) {
  const auto log_p = at::log_softmax(logits, 1);
  const auto of_label = -log_p.gather(1, labels.unsqueeze(1)).squeeze(1);
  return smoothing == 0.0 ? of_label : of_label * (1.0 - smoothing) - log_p.mean(1) * smoothing;
}

at::Tensor binary_cross_entropy_rows(const at::Tensor& logits, const at::Tensor& targets) {
  return (at::softplus(logits) - logits * targets).mean(1);
}

at::Tensor one_hot_rows(const at::Tensor& labels, const at::Tensor& logits) {
  return at::one_hot(labels, logits.size(1)).to(logits.scalar_type());
}

at::Tensor cosine_rows(const at::Tensor& a, const at::Tensor& b) {
  constexpr double length_min = 1e-8;
  const auto direction = [](const at::Tensor& rows) {
    const auto length = rows.norm(2, 1, true);
    return rows / length.clamp_min(length_min) * (length > length_min);
  };
  return (direction(a) * direction(b)).sum(1);
}

at::Tensor distillation_rows(const at::Tensor& student, const at::Tensor& teacher, const distillation_rule& rule) {
  if (rule.form == distillation_form::sigmoid) {
    const auto share = static_cast<double>(student.size(1)) / static_cast<double>(rule.class_count);
    return binary_cross_entropy_rows(student, at::sigmoid(teacher)) * share;
  }
  const double t = rule.temperature;
  const auto log_z = at::log_softmax(student / t, 1), log_p = at::log_softmax(teacher / t, 1);
  const auto p = log_p.exp();
  const auto divergence = [&] { return (p * (log_p - log_z)).sum(1); };
  switch (rule.form) {
  case distillation_form::kl:
    return divergence();
  case distillation_form::kl_scaled:
    return divergence() * (t * t);
  case distillation_form::kl_elements:
    return divergence() * (t * t / static_cast<double>(student.size(1)));
  case distillation_form::kl_lucir:
    return divergence() * (t * t / 4.0);
  default:
    return -(p * log_z).sum(1);
  }
}

at::Tensor old_class_distillation(const at::Tensor& logits, const at::Tensor& teacher, const distillation_rule& rule) {
  return distillation_rows(logits.narrow(1, 0, teacher.size(1)), teacher, rule);
}

} // namespace mneme
