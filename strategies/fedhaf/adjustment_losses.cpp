#include "strategies/fedhaf/adjustment_losses.hpp"
#include "strategies/shared/row_losses.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <limits>
namespace mneme {
namespace {

at::Tensor positions_where(const at::Tensor& chosen) { return chosen.nonzero().squeeze(1); }

/// Rows of a training step of one model, and the positions of its old rows (exemplars) and new rows.
struct adjustment_step {
  const loss_rows& in;
  at::Tensor old_rows, new_rows; // [n] row positions
};

/// L_FD (eq. 2): | F'_t(x) - F'_t-1(x) |^2, averaged over exemplars.
at::Tensor feature_distillation(const adjustment_step& step, const adjustment_terms& settings) {
  const auto moved = (step.in.features - step.in.teachers[0].features).index_select(0, step.old_rows); // [n, D]
  const auto of_rows = settings.dimensions == dimension_sum::mean ? moved.square().mean(1) : moved.square().sum(1);
  return of_rows.mean(at::kDouble);
}

/// Returns the weights [n] (float64) of the old rows, or of the new rows, in the mean that eq. 3 compares.
at::Tensor balance_weights(const at::Tensor& labels, std::int64_t classes_of_side, balance_division division) {
  if (division == balance_division::class_counts)
    return at::full({labels.numel()}, 1.0 / static_cast<double>(classes_of_side), labels.options().dtype(at::kDouble));
  const auto counts = at::bincount(labels).to(at::kDouble); // by class
  const auto present = (counts > 0).sum().to(at::kDouble);
  return 1.0 / (counts.index_select(0, labels) * present);
}

/// L_FB (eq. 3): | mean length of new vectors - mean length of old ones |. Undefined if there are no old or no new
/// rows, or if the reference model is missing.
at::Tensor feature_balance(const adjustment_step& step, const adjustment_terms& settings) {
  const bool frozen = settings.reference == balance_reference::before_task;
  const auto vectors_of = [&](const at::Tensor& features, const at::Tensor& logits) {
    return settings.balanced == balanced_vectors::features ? features : logits;
  };
  const auto present = vectors_of(step.in.features, step.in.logits);
  const auto before =
      step.in.teachers.empty() ? at::Tensor{} : vectors_of(step.in.teachers[0].features, step.in.teachers[0].logits);
  if (step.new_rows.numel() == 0 || (frozen && !before.defined()))
    return {};
  const auto mean_length = [&](const at::Tensor& vectors, const at::Tensor& rows, std::int64_t classes) {
    const auto weights = balance_weights(step.in.labels.index_select(0, rows), classes, settings.division);
    return (vectors.index_select(0, rows).norm(2, {1}) * weights).sum();
  };
  return (mean_length(present, step.new_rows, settings.tasks.back().size()) -
          mean_length(frozen ? before : present, step.old_rows, settings.old_classes()))
      .abs();
}

/// Returns a mask [n, C] that is true in the columns of tasks other than the row's own.
at::Tensor outside_own_task(const at::Tensor& labels, std::int64_t classes, const std::vector<class_range>& tasks) {
  const auto columns = at::arange(classes, labels.options()).unsqueeze(0);
  auto outside = at::ones({labels.numel(), classes}, labels.options().dtype(at::kBool));
  for (const auto& task : tasks) {
    const auto rows = (labels >= task.low).logical_and(labels < task.high).unsqueeze(1);
    const auto own = (columns >= task.low).logical_and(columns < task.high);
    outside = outside.logical_and(rows.logical_and(own).logical_not());
  }
  return outside;
}

/// L_CE (eq. 4), averaged over the rows that `settings.rows` selects; the softmax of a row covers the classes of
/// `settings.scope`. Undefined without rows.
at::Tensor cross_entropy(const adjustment_step& step, const adjustment_terms& settings) {
  const auto& all = settings.labels_pass ? step.in.logits : step.in.head_logits;
  const auto every = at::arange(step.in.count(), step.in.labels.options());
  const auto rows = settings.rows == label_rows::fresh ? step.new_rows : every;
  if (rows.numel() == 0)
    return {};
  const auto labels = step.in.labels.index_select(0, rows);
  auto logits = all.index_select(0, rows);
  if (settings.scope == label_scope::own_task)
    logits = logits.masked_fill(outside_own_task(labels, logits.size(1), settings.tasks),
                                -std::numeric_limits<float>::infinity());
  return cross_entropy_rows(logits, labels).mean(at::kDouble);
}

/// L_KD (eq. 5) between distributions over the old classes only, averaged over exemplars.
at::Tensor distillation(const adjustment_step& step, const adjustment_terms& settings) {
  const auto& all = settings.distillation_passes ? step.in.logits : step.in.head_logits;
  const auto log_softmax = [&](const at::Tensor& logits) {
    return at::log_softmax(
        logits.index_select(0, step.old_rows).narrow(1, 0, settings.old_classes()) / settings.temperature, 1);
  };
  const auto log_q = log_softmax(all), log_p = log_softmax(step.in.teachers[0].logits);
  const auto divergence = settings.direction == divergence::present_from_before ? log_q.exp() * (log_q - log_p)
                                                                                : log_p.exp() * (log_p - log_q);
  return divergence.sum(1).mean(at::kDouble);
}

/// Returns the loss terms; terms of weight 0 are omitted.
std::vector<at::Tensor> adjustment_values(const loss_rows& in, const adjustment_terms& settings) {
  const auto is_old = in.labels < settings.old_classes();
  const adjustment_step step{
      .in = in, .old_rows = positions_where(is_old), .new_rows = positions_where(is_old.logical_not())};
  const bool has_old = step.old_rows.numel() > 0, has_teacher = !in.teachers.empty();
  std::vector<at::Tensor> terms;
  const auto add = [&](double weight, bool is_possible, auto formula) {
    if (weight == 0.0)
      return;
    const auto value = is_possible ? formula(step, settings) : at::Tensor{};
    terms.push_back(value.defined() ? value * weight : value);
  };
  add(settings.cross_entropy, true, cross_entropy);
  add(settings.distillation, has_old && has_teacher, distillation);
  add(settings.feature_distillation, has_old && has_teacher, feature_distillation);
  add(settings.feature_balance, has_old, feature_balance);
  return terms;
}

} // namespace

loss_ref adjustment_objective(const adjustment_terms& settings) {
  auto identity = fmt::format(
      "adjustment {} {} {} {} {} {} {} {} {} {} {} {} {} {}", settings.feature_distillation, settings.feature_balance,
      settings.cross_entropy, settings.distillation, static_cast<int>(settings.scope), static_cast<int>(settings.rows),
      static_cast<int>(settings.direction), settings.temperature, static_cast<int>(settings.dimensions),
      static_cast<int>(settings.balanced), static_cast<int>(settings.reference), static_cast<int>(settings.division),
      settings.labels_pass, settings.distillation_passes);
  for (const auto& classes : settings.tasks)
    identity += fmt::format(" {}-{}", classes.low, classes.high);
  loss_traits traits{.identity = std::move(identity),
                     .reads_features = settings.compares_features(),
                     .reads_head_logits = !settings.labels_pass || !settings.distillation_passes};
  const auto add = [&](double weight, const char* name) {
    if (weight != 0.0)
      traits.terms.push_back(name);
  };
  add(settings.cross_entropy, "cross_entropy");
  add(settings.distillation, "distillation");
  add(settings.feature_distillation, "feature_distillation");
  add(settings.feature_balance, "feature_balance");
  return differentiable_objective(std::move(traits),
                                  [settings](const loss_rows& in) { return adjustment_values(in, settings); });
}

} // namespace mneme
