/// forgetting_losses: what the clients of GLFC and LGA minimise: losses that weigh rows by how much their task is being
/// forgotten, and distillation from an old global model.
///
/// Dong et al. 2022, "Federated Class-Incremental Learning" (GLFC), and Dong et al. 2023, "No One Left Behind" (LGA,
/// TPAMI). The papers write softmax and per-task terms; the released programs train sigmoids with a cumulative
/// grouping. Both are here.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include "runtime/method/training.hpp"
namespace mneme {

// Axes: B rows of a step, C classes seen, O of them old (the teacher's).

/// The probability behind classification, and its loss.
enum class class_likelihood : std::uint8_t {
  softmax, ///< Cross-entropy of a row.
  sigmoid, ///< Binary cross-entropy, a mean over the C classes.
};

/// How rows are weighed by their gradient magnitudes.
enum class gradient_weighting : std::uint8_t {
  none,       ///< Not at all.
  per_task,   ///< LGA: by the mean of their task.
  cumulative, ///< LGA as released: old rows by the sum over k of w_k, of all old tasks up to k, then within [0.5, 5].
  old_new,    ///< GLFC: by the mean of old rows, or of new ones.
};

/// What the teacher adds.
enum class old_knowledge : std::uint8_t {
  mixed, ///< The label with its old classes replaced by the teacher's probabilities (L_SD).
  icarl, ///< Sigmoids of the old classes alone (iCaRL, Rebuffi et al. 2017).
};

struct forgetting_terms {
  class_likelihood likelihood = class_likelihood::softmax;
  gradient_weighting weighting = gradient_weighting::per_task;
  old_knowledge distillation = old_knowledge::mixed;
  bool weighs_labels = true, weighs_distillation = true; ///< Rows of a term are weighed, or all alike.
  double label_factor = 1.0; ///< Multiplies the labels' term where there is a teacher; without one it is 1.
  double distillation_factor = 1.0;
};

/// What a client knows of its rows, in train_job::side.
struct forgetting_side {
  std::vector<std::int64_t> group_of_class{}; ///< [classes of the run] the old task of a memorised class, or -1: new.
  std::int64_t old_tasks = 0;                 ///< Tasks before the present one.
  double exponent = 1.0; ///< a of |V|^a: C_old / (C_old + C_new), or as released t / (t + 1); GLFC 1.
};
[[nodiscard]] tensors_ref as_side(const forgetting_side& known);

/// |V| of each row: the gradient of the loss at the label's logit, |p_y - 1|. @param logits [B, C]
/// @param labels [B], -1 where padded. Returns [B] float64, 0 where padded.
[[nodiscard]] at::Tensor gradient_magnitudes(const at::Tensor& logits, const at::Tensor& labels, class_likelihood kind);

/// The rows' weights; they carry no gradient. @param magnitudes [B] float64, |V|^a
/// @param groups [B] int64: the old task of the row, -1 if it is new, less if it is padded.
/// Returns [B] float64, 0 where padded.
[[nodiscard]] at::Tensor row_weights(const at::Tensor& magnitudes, const at::Tensor& groups, std::int64_t old_tasks,
                                     gradient_weighting kind);

/// The label's one-hot row with its first O entries replaced by the teacher's probabilities: [B, C].
/// @param taught [B, O] the teacher's logits
[[nodiscard]] at::Tensor mixed_targets(const at::Tensor& taught, const at::Tensor& labels, std::int64_t classes,
                                       class_likelihood kind);

/// The objective of a client's round; sides are those of as_side(). A job without a teacher has the labels' term alone.
[[nodiscard]] loss_ref forgetting_objective(const forgetting_terms& terms);

} // namespace mneme
