/// adjustment_losses: what FedHAF's clients minimise (eqs. 2-5): cross-entropy and distillation of the head, and
/// distillation and balance of the adjusted features.
///
/// Eqs. 2 and 3 can be read in several ways, and the text contradicts the formulas in others: what is read how is a
/// field here.
#pragma once
#include "runtime/method/training.hpp"
namespace mneme {

// Axes: B rows of a step, C classes seen, O of them old (those of tasks before), D adjusted features. A row is old if
// its class is: an exemplar.

/// The classes that a row's cross-entropy compares.
enum class label_scope : std::uint8_t {
  own_task, ///< Those of its own task (eq. 4 as the ablations describe it).
  seen,
};
/// The rows that cross-entropy reads.
enum class label_rows : std::uint8_t {
  fresh, ///< Those of the task (eq. 4).
  every, ///< Exemplars, too, as the text of stage 1 says.
};
/// The direction of a Kullback-Leibler divergence.
enum class divergence : std::uint8_t {
  present_from_before, ///< KL(F_t || F_t-1), as printed in eq. 5.
  before_from_present, ///< KL(F_t-1 || F_t), as distillation usually has it.
};
/// Sums or means over the D dimensions of eq. 2.
enum class dimension_sum : std::uint8_t { mean, sum };
/// The vectors whose lengths eq. 3 compares.
enum class balanced_vectors : std::uint8_t { features, logits };
/// The model that gives the lengths of old rows in eq. 3.
enum class balance_reference : std::uint8_t {
  before_task, ///< That before the task, which is frozen: new features are drawn to the lengths that old ones had.
  present,
};
/// What the sums of eq. 3 are divided by.
enum class balance_division : std::uint8_t {
  class_means,  ///< Mean lengths by class, averaged over the classes of the step.
  class_counts, ///< The numbers of new and of old classes, as printed: the loss grows with the batch.
};

struct adjustment_terms {
  // Weights; a term of weight 0 is not computed.
  double feature_distillation = 0.0; ///< FD (eq. 2)
  double feature_balance = 0.0;      ///< FB (eq. 3)
  double cross_entropy = 0.0;        ///< CE (eq. 4)
  double distillation = 0.0;         ///< KD (eq. 5)
  label_scope scope = label_scope::seen;
  label_rows rows = label_rows::every;
  divergence direction = divergence::present_from_before;
  double temperature = 1.0; ///< KD's; the loss is not multiplied by its square.
  dimension_sum dimensions = dimension_sum::mean;
  balanced_vectors balanced = balanced_vectors::features;
  balance_reference reference = balance_reference::before_task;
  balance_division division = balance_division::class_means;
  bool labels_pass = true;          ///< CE reaches the module, and not the head alone,
  bool distillation_passes = true;  ///< and so does KD. FD and FB do.
  std::vector<class_range> tasks{}; ///< The classes of every task so far, in order; the last is the present one.

  [[nodiscard]] std::int64_t old_classes() const { return tasks.empty() ? 0 : tasks.back().low; }
  [[nodiscard]] bool compares_features() const { return feature_distillation > 0.0 || feature_balance > 0.0; }
};

/// FD, KD and FB are 0 where a step has no old rows, and where there is no teacher; FB where it has no new ones.
/// Teachers show logits of the old classes for KD, and features for FD and FB.
[[nodiscard]] loss_ref adjustment_objective(const adjustment_terms& terms);

} // namespace mneme
