/// row_losses: loss terms of class-incremental methods. Each function returns one value per row.
#pragma once
#include "runtime/method/differentiable_loss.hpp"
namespace mneme {

// Axes: R rows of a step, C classes of the loss, O old classes (those of the teacher), D features.

/// Cross-entropy -log softmax(z)_y, with label smoothing: [R].
/// @param logits [R, C] @param labels [R] int64, column numbers of `logits`
[[nodiscard]] at::Tensor cross_entropy_rows(const at::Tensor& logits, const at::Tensor& labels, double smoothing = 0.0);
/// Binary cross-entropy of sigmoid(logits) with `targets`, averaged over the columns: [R].
/// @param logits, targets [R, C]
[[nodiscard]] at::Tensor binary_cross_entropy_rows(const at::Tensor& logits, const at::Tensor& targets);
/// One-hot labels [R, columns of `logits`], in the type of `logits`.
[[nodiscard]] at::Tensor one_hot_rows(const at::Tensor& labels, const at::Tensor& logits);
/// Cosine similarity of the rows of two matrices [R, D]: [R]. For a row of length at most 1e-8, cosine and gradient are
/// 0.
[[nodiscard]] at::Tensor cosine_rows(const at::Tensor& a, const at::Tensor& b);

/// Distillation losses between the logits z of the student and q of the teacher for the old classes, at temperature T,
/// with p = softmax(q / T).
enum class distillation_form : std::uint8_t {
  cross_entropy, ///< -sum_c p_c log softmax(z / T)_c (PyCIL's iCaRL and BiC; official BiC).
  kl,            ///< KL(p || softmax(z / T)) (FLwF-2T).
  kl_scaled,     ///< T^2 KL(p || softmax(z / T)) (SS-IL, block by block).
  kl_elements,   ///< T^2 / O * KL(p || softmax(z / T)), the mean over elements (DyTox).
  kl_lucir,      ///< T^2 / 4 * KL(p || softmax(z / T)) (LUCIR's own baseline, T = 2).
  sigmoid,       ///< Sum of binary cross-entropies with sigmoid(q), divided by the number of classes seen (iCaRL).
};

/// Parameters of a distillation loss.
struct distillation_rule {
  distillation_form form = distillation_form::cross_entropy;
  double temperature = 2.0;
  std::int64_t class_count = 0; ///< C, for distillation_form::sigmoid only.
};
/// Distillation loss of each row: [R]. @param student, teacher [R, O]
[[nodiscard]] at::Tensor distillation_rows(const at::Tensor& student, const at::Tensor& teacher,
                                           const distillation_rule& rule);
/// Distillation loss of each row for the first O columns of `logits` [R, C]: [R]. @param teacher [R, O]
[[nodiscard]] at::Tensor old_class_distillation(const at::Tensor& logits, const at::Tensor& teacher,
                                                const distillation_rule& rule);

} // namespace mneme
