/// row_losses: formulas that losses of class-incremental methods are sums of. Each gives a value per row.
#pragma once
#include "runtime/method/differentiable_loss.hpp"
namespace mneme {

// Axes: R rows of a step, C classes of the loss, O of them old (the teacher's), D features.

/// -log softmax(z)_y, or that of smoothed labels (loss_input::label_smoothing). @param labels [R] int64 among the
/// columns
[[nodiscard]] at::Tensor cross_entropy_rows(const at::Tensor& logits, const at::Tensor& labels, double smoothing = 0.0);
/// Binary cross-entropies with `targets` [R, columns], a mean over the columns.
[[nodiscard]] at::Tensor binary_cross_entropy_rows(const at::Tensor& logits, const at::Tensor& targets);
/// 1 in the column of each row's label, else 0: [R, columns] of the type of `logits`.
[[nodiscard]] at::Tensor one_hot_rows(const at::Tensor& labels, const at::Tensor& logits);
/// Cosines of the rows of two matrices [R, D]. A row of a length up to 1e-8 has no direction: cosine and gradient are
/// 0.
[[nodiscard]] at::Tensor cosine_rows(const at::Tensor& a, const at::Tensor& b);

/// The distance of the student's old columns z from the teacher's q, at temperature T, with p = softmax(q / T).
enum class distillation_form : std::uint8_t {
  cross_entropy, ///< -sum_c p_c log softmax(z / T)_c (PyCIL's iCaRL and BiC; BiC's own program).
  kl,            ///< KL(p || softmax(z / T)) (FLwF-2T).
  kl_scaled,     ///< T^2 KL(p || softmax(z / T)) (SS-IL, block by block).
  kl_elements,   ///< T^2 / O KL(...): a mean over elements (DyTox).
  kl_lucir,      ///< T^2 / 4 KL(...) (LUCIR's own baseline, whose T is 2).
  sigmoid,       ///< Binary cross-entropies with sigmoid(q), summed and divided by the classes seen (iCaRL).
};

struct distillation_rule {
  distillation_form form = distillation_form::cross_entropy;
  double temperature = 2.0;
  std::int64_t class_count = 0; ///< C: distillation_form::sigmoid.
};
/// @param student, teacher [R, O]
[[nodiscard]] at::Tensor distillation_rows(const at::Tensor& student, const at::Tensor& teacher,
                                           const distillation_rule& rule);
/// The same of the student's first columns, as many as the teacher has.
[[nodiscard]] at::Tensor old_class_distillation(const at::Tensor& logits, const at::Tensor& teacher,
                                                const distillation_rule& rule);

} // namespace mneme
