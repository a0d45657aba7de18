/// quadratic_penalty: cross-entropy plus quadratic penalties on weight changes, for EWC and related methods.
#pragma once
#include "runtime/method/training.hpp"
namespace mneme {

// Axes: P weights of a model.

/// Penalty strength / 2 * sum_i importance_i (w_i - anchor_i)^2. It is 0 for a job whose auxiliary tensors lack the
/// importance.
struct quadratic_penalty {
  const char* term = "";        ///< loss_term::name
  const char* importance = "";  ///< Name of an auxiliary tensor [P] of the job; unused if `constant` is defined.
  at::Tensor constant{};        ///< [P] importance that is the same for all jobs.
  const char* anchor = nullptr; ///< Name of an auxiliary tensor [P]; null: the weights at the start of training.
  double strength = 1.0;
};

/// @param identity value of loss::identity(); must contain the strengths
[[nodiscard]] loss_ref quadratic_objective(std::string identity, std::vector<quadratic_penalty> penalties);

} // namespace mneme
