#include "strategies/baselines/row_losses.hpp"
#include <ATen/ATen.h>
namespace mneme {

row_losses cross_entropy_rows(const at::Tensor& logits, const at::Tensor& labels, double smoothing) {
  const auto log_p = at::log_softmax(logits, 1);
  const auto places = labels.clamp(0, logits.size(1) - 1).unsqueeze(1);
  row_losses rows{.values = -log_p.gather(1, places).squeeze(1),
                  .gradient = log_p.exp().scatter_add(1, places, at::full_like(places, -1, log_p.options()))};
  if (smoothing == 0.0)
    return rows;
  const auto classes = static_cast<double>(logits.size(1));
  rows.values = rows.values * (1.0 - smoothing) - log_p.mean(1) * smoothing;
  rows.gradient =
      (rows.gradient - smoothing / classes).scatter_add(1, places, at::full_like(places, smoothing, log_p.options()));
  return rows;
}

row_losses sigmoid_rows(const at::Tensor& logits, const at::Tensor& targets) {
  const auto share = 1.0 / static_cast<double>(logits.size(1));
  return {.values = (at::softplus(logits) - logits * targets).sum(1) * share,
          .gradient = (at::sigmoid(logits) - targets) * share};
}

namespace {

/// `factor` * KL, or the cross-entropy, from which no entropy is taken away.
row_losses softened_rows(const at::Tensor& student, const at::Tensor& teacher, double temperature, double factor,
                         bool divergence) {
  const auto log_z = at::log_softmax(student / temperature, 1), log_q = at::log_softmax(teacher / temperature, 1);
  const auto p = log_q.exp();
  const auto away = divergence ? log_q - log_z : -log_z;
  return {.values = (p * away).sum(1) * factor, .gradient = (log_z.exp() - p) * (factor / temperature)};
}

} // namespace

row_losses distilled_rows(const at::Tensor& student, const at::Tensor& teacher, const distillation_rule& rule) {
  const double t = rule.temperature;
  switch (rule.form) {
  case distillation_form::cross_entropy:
    return softened_rows(student, teacher, t, 1.0, false);
  case distillation_form::kl_scaled:
    return softened_rows(student, teacher, t, t * t, true);
  case distillation_form::kl_elements:
    return softened_rows(student, teacher, t, t * t / static_cast<double>(student.size(1)), true);
  case distillation_form::kl_lucir:
    return softened_rows(student, teacher, t, t * t / 4.0, true);
  case distillation_form::sigmoid:
    break;
  }
  auto rows = sigmoid_rows(student, at::sigmoid(teacher));
  const double share = static_cast<double>(student.size(1)) / static_cast<double>(rule.class_count);
  return {.values = rows.values * share, .gradient = rows.gradient * share};
}

// -- a step -----------------------------------------------------------------------------------------------------------

namespace {

/// Adds what rows say, by their weights, to a gradient.
void add_rows(at::Tensor to, const model_step& in, const at::Tensor& gradient, double factor) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(gradient.dim()), 1);
  sizes.front() = gradient.size(0);
  to.add_((gradient * (in.weight * factor).view(sizes)).masked_fill(in.padded.view(sizes), 0.0));
}

} // namespace

void model_losses::add(std::size_t term, const model_step& in, const row_losses& rows, double factor,
                       std::int64_t low) const {
  add_values(term, in, rows.values, factor);
  add_rows(d_logits.narrow(1, low, rows.gradient.size(1)), in, rows.gradient, factor);
}

void model_losses::add_map(std::size_t term, const model_step& in, std::size_t m, const row_losses& rows,
                           double factor) const {
  add_values(term, in, rows.values, factor);
  add_rows(d_maps[m], in, rows.gradient, factor);
}

void model_losses::add_features(std::size_t term, const model_step& in, const row_losses& rows, double factor) const {
  add_values(term, in, rows.values, factor);
  add_rows(d_features, in, rows.gradient, factor);
}

void model_losses::add_values(std::size_t term, const model_step& in, const at::Tensor& values, double factor) const {
  auto sum = terms[term];
  sum.add_((values * in.weight).masked_fill(in.padded, 0.0).sum(at::kDouble), factor);
}

loss_output stepwise_loss::operator()(const loss_input& in) const {
  loss_output out{.d_logits = at::zeros_like(in.logits)};
  const auto models = in.logits.size(0);
  if (reads_features_)
    out.d_features = at::zeros_like(in.features);
  for (const auto& map : in.maps)
    out.d_maps.push_back(at::zeros_like(map));
  for (const auto* const name : terms_)
    out.terms.push_back({name, at::zeros({models}, in.logits.options().dtype(at::kDouble))});
  const auto row_of = [](const at::Tensor& whole, std::int64_t k) { return whole.defined() ? whole[k] : whole; };
  for (std::int64_t k = 0; k < models; ++k) {
    const auto padded = in.labels[k] < 0;
    model_step step{.logits = in.logits[k],
                    .features = row_of(in.features, k),
                    .labels = in.labels[k].clamp_min(0),
                    .weight = in.row_weight[k],
                    .padded = padded,
                    .teacher = row_of(in.teacher, k),
                    .teacher_features = row_of(in.teacher_features, k),
                    .targets = row_of(in.targets, k),
                    .replayed = in.replayed,
                    .label_smoothing = in.label_smoothing};
    model_losses step_losses{.d_logits = out.d_logits[k], .d_features = row_of(out.d_features, k)};
    for (std::size_t m = 0; m < in.maps.size(); ++m) {
      step.maps.push_back(in.maps[m][k]);
      step_losses.d_maps.push_back(out.d_maps[m][k]);
    }
    for (const auto& map : in.teacher_maps)
      step.teacher_maps.push_back(map[k]);
    for (const auto& term : out.terms)
      step_losses.terms.push_back(term.value[k]);
    add_model(step, step_losses);
  }
  out.values = out.terms.front().value.clone();
  for (std::size_t i = 1; i < out.terms.size(); ++i)
    out.values += out.terms[i].value;
  if (out.terms.size() == 1)
    out.terms.clear();
  return out;
}

} // namespace mneme
