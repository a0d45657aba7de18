/// adjustment_losses: losses of FedHAF's clients (eqs. 2-5). The head has cross-entropy and distillation, and the
/// adjusted features have distillation and balance.
///
/// Eqs. 2 and 3 are ambiguous, and other equations contradict the text of the paper. The fields of adjustment_terms
/// select among the interpretations.
#pragma once
#include "runtime/method/training.hpp"
namespace mneme {

// Axes: B rows of a step, C classes seen, O old classes (of earlier tasks), D adjusted features. Old rows have old
// classes; they are exemplars.

/// Classes that the cross-entropy of a row covers.
enum class label_scope : std::uint8_t {
  own_task, ///< Classes of the row's own task (eq. 4, as the paper's ablations describe it).
  seen,
};
/// Rows of the cross-entropy.
enum class label_rows : std::uint8_t {
  fresh, ///< Rows of the current task (eq. 4).
  every, ///< Rows of the current task and exemplars (the paper's text on stage 1).
};
/// Direction of the KL divergence.
enum class divergence : std::uint8_t {
  present_from_before, ///< KL(F_t || F_t-1), as printed in eq. 5.
  before_from_present, ///< KL(F_t-1 || F_t), the usual direction of distillation.
};
/// Reduction over the D dimensions in eq. 2.
enum class dimension_sum : std::uint8_t { mean, sum };
/// Vectors whose lengths eq. 3 compares.
enum class balanced_vectors : std::uint8_t { features, logits };
/// Model that computes the lengths of old rows in eq. 3.
enum class balance_reference : std::uint8_t {
  before_task, ///< The frozen model before the task; new features adapt to its lengths.
  present,
};
/// Divisor of the sums in eq. 3.
enum class balance_division : std::uint8_t {
  class_means,  ///< Mean length per class, averaged over the classes of the step.
  class_counts, ///< Numbers of new and of old classes, as printed in eq. 3; the loss grows with the batch.
};

/// Weights of the loss terms, and interpretations of their equations.
struct adjustment_terms {
  // Weights; a term of weight 0 is not computed.
  double feature_distillation = 0.0; ///< FD (eq. 2)
  double feature_balance = 0.0;      ///< FB (eq. 3)
  double cross_entropy = 0.0;        ///< CE (eq. 4)
  double distillation = 0.0;         ///< KD (eq. 5)
  label_scope scope = label_scope::seen;
  label_rows rows = label_rows::every;
  divergence direction = divergence::present_from_before;
  double temperature = 1.0; ///< Temperature of KD, which has no factor T^2.
  dimension_sum dimensions = dimension_sum::mean;
  balanced_vectors balanced = balanced_vectors::features;
  balance_reference reference = balance_reference::before_task;
  balance_division division = balance_division::class_means;
  bool labels_pass = true;          ///< Gradients of CE reach the module; false: they reach only the head.
  bool distillation_passes = true;  ///< Gradients of KD reach the module. Gradients of FD and FB always do.
  std::vector<class_range> tasks{}; ///< Classes of every task so far, in order; the last is the current one.

  [[nodiscard]] std::int64_t old_classes() const { return tasks.empty() ? 0 : tasks.back().low; }
  [[nodiscard]] bool compares_features() const { return feature_distillation > 0.0 || feature_balance > 0.0; }
};

/// Returns the weighted sum of the loss terms. FD and KD are 0 in a step without old rows, or without a teacher. FB is
/// 0 without old or new rows, or without its reference model. The job's teacher must have logits of the old classes for
/// KD, and features for FD and FB.
[[nodiscard]] loss_ref adjustment_objective(const adjustment_terms& terms);

} // namespace mneme
