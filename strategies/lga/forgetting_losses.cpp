#include "strategies/lga/forgetting_losses.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
namespace mneme {
namespace {

constexpr const char *group_name = "group_of_class", *exponent_name = "exponent", *tasks_name = "old_tasks";

/// Where rows are not padded: [B].
at::Tensor real_rows(const at::Tensor& labels) { return labels >= 0; }

at::Tensor label_rows(const at::Tensor& labels, std::int64_t classes) {
  auto made = at::zeros({labels.size(0), classes}, labels.options().dtype(at::kFloat));
  return made.scatter_(1, labels.clamp_min(0).unsqueeze(1), 1.0);
}

/// values / mean of the values in `group`, 0 elsewhere. A group without forgetting weighs 1 each.
at::Tensor relative_to_mean(const at::Tensor& values, const at::Tensor& group) {
  const auto chosen = group.to(at::kDouble);
  const auto mean = (values * chosen).sum() / chosen.sum().clamp_min(1.0);
  return at::where(mean > 0, values / mean, at::ones_like(values)) * chosen;
}

at::Tensor probabilities(const at::Tensor& logits, class_likelihood kind) {
  return kind == class_likelihood::softmax ? at::softmax(logits, 1) : at::sigmoid(logits);
}

/// Values of rows and their gradients.
struct row_losses {
  at::Tensor values{};   // [B]
  at::Tensor d_logits{}; // [B, columns]
};

/// Softmax: -sum_c Y_c log P_c, where Y need not sum to 1 (a finite form of the KL of eq. 9, whose zeros make it
/// infinite). Sigmoid: binary cross-entropies, summed over the columns and divided by `classes`.
row_losses against(const at::Tensor& logits, const at::Tensor& targets, class_likelihood kind, std::int64_t classes) {
  if (kind == class_likelihood::softmax) {
    const auto log_p = at::log_softmax(logits, 1);
    return {.values = -(targets * log_p).sum(1), .d_logits = log_p.exp() * targets.sum(1, true) - targets};
  }
  const auto share = 1.0 / static_cast<double>(classes);
  return {.values = (at::softplus(logits) - logits * targets).sum(1) * share,
          .d_logits = (at::sigmoid(logits) - targets) * share};
}

class forgetting_loss final : public loss {
public:
  explicit forgetting_loss(const forgetting_terms& terms)
      : terms_(terms), identity_(fmt::format("forgetting {} {} {} {} {} {} {}", static_cast<int>(terms.likelihood),
                                             static_cast<int>(terms.weighting), static_cast<int>(terms.distillation),
                                             terms.weighs_labels, terms.weighs_distillation, terms.label_factor,
                                             terms.distillation_factor)) {}
  [[nodiscard]] std::string identity() const override { return identity_; }

  /// Model by model, so that the bits of one do not depend on the others.
  [[nodiscard]] loss_output operator()(const loss_input& in) const override {
    const auto options = in.logits.options().dtype(at::kDouble);
    loss_output out{.d_logits = at::zeros_like(in.logits)};
    for (const char* name : {"cross_entropy", "distillation"})
      out.terms.push_back({name, at::zeros({in.logits.size(0)}, options)});
    for (std::int64_t k = 0; k < in.logits.size(0); ++k)
      add_model(in, k, out);
    out.values = out.terms[0].value + out.terms[1].value;
    return out;
  }

private:
  void add_model(const loss_input& in, std::int64_t k, loss_output& out) const {
    const auto logits = in.logits[k], labels = in.labels[k];
    const auto classes = logits.size(1);
    const bool taught = in.teacher.defined();
    const auto alike = in.row_weight[k].masked_fill(labels < 0, 0.0f); // [B]
    const auto weighed = alike * weights_of(in, k).to(at::kFloat);
    const auto &of_labels = terms_.weighs_labels ? weighed : alike,
               &of_teacher = terms_.weighs_distillation ? weighed : alike;
    auto d_logits = out.d_logits[k];
    const auto add = [&](std::size_t place, const row_losses& term, const at::Tensor& weight, double factor,
                         std::int64_t columns) {
      out.terms[place].value[k] += (term.values * weight).masked_fill(labels < 0, 0.0f).sum(at::kDouble) * factor;
      const auto scaled = term.d_logits * (weight * factor).unsqueeze(1);
      d_logits.narrow(1, 0, columns).add_(scaled.masked_fill((labels < 0).unsqueeze(1), 0.0f));
    };

    add(0, against(logits, label_rows(labels, classes), terms_.likelihood, classes), of_labels,
        taught ? terms_.label_factor : 1.0, classes);
    if (taught && terms_.distillation == old_knowledge::icarl) {
      const auto old = in.teacher.size(2);
      add(1, against(logits.narrow(1, 0, old), at::sigmoid(in.teacher[k]), class_likelihood::sigmoid, classes),
          of_teacher, terms_.distillation_factor, old);
    } else if (taught) {
      const auto targets = mixed_targets(in.teacher[k], labels, classes, terms_.likelihood);
      add(1, against(logits, targets, terms_.likelihood, classes), of_teacher, terms_.distillation_factor, classes);
    }
  }

  [[nodiscard]] at::Tensor weights_of(const loss_input& in, std::int64_t k) const {
    const auto labels = in.labels[k];
    if (terms_.weighting == gradient_weighting::none || !in.sides[static_cast<std::size_t>(k)])
      return real_rows(labels).to(at::kDouble);
    const auto& side = *in.sides[static_cast<std::size_t>(k)];
    const auto of_class = side.at(group_name).to(labels.device());
    const auto groups = of_class.index_select(0, labels.clamp_min(0)).masked_fill(labels < 0, -2);
    const auto exponent = side.at(exponent_name).to(labels.device());
    const auto magnitudes = gradient_magnitudes(in.logits[k], labels, terms_.likelihood).pow(exponent);
    return row_weights(magnitudes, groups, side.at(tasks_name).item<std::int64_t>(), terms_.weighting);
  }

  forgetting_terms terms_;
  std::string identity_;
};

/// Each old row by the means of all groups that it is in: S_k holds the rows of old tasks up to k.
at::Tensor cumulative_weights(const at::Tensor& magnitudes, const at::Tensor& groups, std::int64_t old_tasks) {
  auto sum = relative_to_mean(magnitudes, groups == -1);
  for (std::int64_t k = 0; k < old_tasks; ++k)
    sum = sum + relative_to_mean(magnitudes, (groups >= 0).logical_and(groups <= k));
  return sum.clamp(0.5, 5.0).masked_fill(groups < -1, 0.0);
}

} // namespace

tensors_ref as_side(const forgetting_side& known) {
  auto made = std::make_shared<tensor_map>();
  made->put(group_name, at::tensor(known.group_of_class, at::kLong));
  made->put(exponent_name, at::tensor(known.exponent, at::kDouble));
  made->put(tasks_name, at::tensor(known.old_tasks, at::kLong));
  return made;
}

at::Tensor gradient_magnitudes(const at::Tensor& logits, const at::Tensor& labels, class_likelihood kind) {
  const auto of_label = probabilities(logits.to(at::kDouble), kind).gather(1, labels.clamp_min(0).unsqueeze(1));
  return (of_label.squeeze(1) - 1.0).abs().masked_fill(labels < 0, 0.0);
}

at::Tensor row_weights(const at::Tensor& magnitudes, const at::Tensor& groups, std::int64_t old_tasks,
                       gradient_weighting kind) {
  const auto real = groups >= -1;
  if (kind == gradient_weighting::none)
    return real.to(at::kDouble);
  if (kind == gradient_weighting::cumulative)
    return cumulative_weights(magnitudes, groups, old_tasks);
  auto sum = relative_to_mean(magnitudes, groups == -1);
  if (kind == gradient_weighting::old_new)
    return sum + relative_to_mean(magnitudes, groups >= 0);
  for (std::int64_t k = 0; k < old_tasks; ++k)
    sum = sum + relative_to_mean(magnitudes, groups == k);
  return sum;
}

at::Tensor mixed_targets(const at::Tensor& taught, const at::Tensor& labels, std::int64_t classes,
                         class_likelihood kind) {
  auto targets = label_rows(labels, classes);
  targets.narrow(1, 0, taught.size(1)).copy_(probabilities(taught, kind));
  return targets;
}

loss_ref forgetting_objective(const forgetting_terms& terms) { return std::make_shared<forgetting_loss>(terms); }

} // namespace mneme
