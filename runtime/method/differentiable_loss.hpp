/// differentiable_loss: a training objective that is given by its formula; autograd computes the gradients.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include "runtime/method/training.hpp"
#include <functional>
namespace mneme {

// Axes: R rows of one model in a step, without padding (first the job's own rows, then the replayed rows); C classes of
// the loss; D features.

/// Inputs of a formula for one model's step. `logits`, `head_logits`, `features` and `maps` require gradients.
struct loss_rows {
  at::Tensor logits{};                 ///< [R, C]; undefined if the loss covers no class
  at::Tensor head_logits{};            ///< Values of `logits`; their gradient trains only the head.
  at::Tensor features{};               ///< [R, D]
  std::vector<at::Tensor> maps{};      ///< [R, channels, height, width] each, in the order of training_options::maps
  at::Tensor labels{};                 ///< [R] int64, relative to the first class of the loss
  at::Tensor weight{};                 ///< [R] float32; see loss_input::row_weight
  at::Tensor is_replayed{};            ///< [R] bool
  at::Tensor targets{};                ///< [R, C] target distributions; undefined: use labels
  std::vector<activations> teachers{}; ///< Teacher outputs for these rows, in the order of train_job::teachers.
  double label_smoothing = 0.0;
  const tensor_map* auxiliary = nullptr; ///< See train_job::auxiliary.

  [[nodiscard]] std::int64_t count() const { return labels.size(0); }
  /// [R] float32: weight 1 / R for each row. The loss is then the mean over own and replayed rows.
  [[nodiscard]] at::Tensor equal_weight() const;
};

/// sum_r weight_r values_r, summed in float64. @param values, weight [R]
[[nodiscard]] at::Tensor weighted_sum(const at::Tensor& values, const at::Tensor& weight);

/// Returns the values of the terms, in the order of their names. A term [R] has one value per row, which is weighted by
/// loss_rows::weight. A term [] is the value for the whole step. An undefined term is 0.
using loss_formula = std::function<std::vector<at::Tensor>(const loss_rows& in)>;

/// Properties of a loss; see the functions of class `loss`.
struct loss_traits {
  std::string identity{};           ///< See loss::identity().
  std::vector<const char*> terms{}; ///< Names of the terms; at least one.
  bool reads_label_smoothing = false;
  bool reads_logits = true;
  bool reads_features = false, reads_head_logits = false; ///< true: loss_rows contains these tensors; false: they are
                                                          ///< undefined.
};

/// A loss that is the sum of a formula's terms. It is computed model by model, so that a model's bits do not depend on
/// other models.
class differentiable_loss : public loss {
public:
  differentiable_loss(loss_traits traits, loss_formula formula)
      : traits_(std::move(traits)), formula_(std::move(formula)) {}
  [[nodiscard]] std::string identity() const final { return traits_.identity; }
  [[nodiscard]] const char* main_term() const final { return traits_.terms.front(); }
  [[nodiscard]] bool reads_label_smoothing() const final { return traits_.reads_label_smoothing; }
  [[nodiscard]] bool reads_logits() const final { return traits_.reads_logits; }
  [[nodiscard]] loss_output operator()(const loss_input& in) const final;

private:
  loss_traits traits_;
  loss_formula formula_;
};

/// Makes a differentiable_loss.
[[nodiscard]] loss_ref differentiable_objective(loss_traits traits, loss_formula formula);

} // namespace mneme
