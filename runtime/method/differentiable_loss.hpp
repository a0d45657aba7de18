/// differentiable_loss: an objective given by its formula; autograd computes the gradients.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include "runtime/method/training.hpp"
#include <functional>
namespace mneme {

// Axes: R rows of one model in a step, without padding: its own rows, then its replayed ones. C classes of the loss,
// D features.

/// What a formula reads of one model's step. Gradients flow to `logits`, `head_logits`, `features` and `maps`.
struct loss_rows {
  at::Tensor logits{};            ///< [R, C]; undefined where the loss covers no class
  at::Tensor head_logits{};       ///< The same values. Their gradient changes the head only and ends at the features.
  at::Tensor features{};          ///< [R, D]
  std::vector<at::Tensor> maps{}; ///< [R, channels, height, width] each: training_options::maps
  at::Tensor labels{};            ///< [R] int64, from 0 within the classes of the loss
  at::Tensor weight{};            ///< [R] float32: loss_input::row_weight
  at::Tensor is_replayed{};       ///< [R] bool
  at::Tensor targets{};           ///< [R, C], or undefined
  std::vector<activations> teachers{}; ///< Outputs for these rows, in the order of train_job::teachers.
  double label_smoothing = 0.0;
  const tensor_map* side = nullptr; ///< train_job::side

  [[nodiscard]] std::int64_t count() const { return labels.size(0); }
  /// [R] float32: 1 / R of each row: the mean over own and replayed rows together.
  [[nodiscard]] at::Tensor equal_weight() const;
};

/// sum_r weight_r values_r, added up in float64. @param values, weight [R]
[[nodiscard]] at::Tensor weighted_sum(const at::Tensor& values, const at::Tensor& weight);

/// The values of the terms, in the order of their names. [R]: a value per row, which counts by loss_rows::weight. []:
/// the term of the whole step. Undefined: the term is 0.
using loss_formula = std::function<std::vector<at::Tensor>(const loss_rows& in)>;

/// Properties of a loss: see the functions of `loss`.
struct loss_traits {
  std::string identity{};           ///< loss::identity()
  std::vector<const char*> terms{}; ///< Names of the terms; at least one.
  bool reads_label_smoothing = false;
  bool reads_logits = true;
  bool reads_features = false, reads_head_logits = false; ///< False: these are undefined in loss_rows.
};

/// The sum of the terms of a formula. Models are computed one by one, so the bits of one do not depend on the others.
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

[[nodiscard]] loss_ref differentiable_objective(loss_traits traits, loss_formula formula);

} // namespace mneme
