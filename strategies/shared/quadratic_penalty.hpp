/// quadratic_penalty: cross-entropy with quadratic penalties on changes of weights, as EWC and its relatives have them.
#pragma once
#include "runtime/method/training.hpp"
namespace mneme {

// Axes: P weights of a model.

/// strength / 2 sum_i importance_i (w_i - anchor_i)^2. It is 0 for jobs whose side has no such importance.
struct quadratic_penalty {
  const char* term = "";        ///< loss_term::name
  const char* importance = "";  ///< Name of [P] in the job's side, unless `constant` is defined.
  at::Tensor constant{};        ///< [P]: an importance that is one for all jobs.
  const char* anchor = nullptr; ///< Name of [P] in the job's side; null: the weights that the training starts from.
  double strength = 1.0;
};

/// @param identity as loss::identity(); it must contain the strengths
[[nodiscard]] loss_ref quadratic_objective(std::string identity, std::vector<quadratic_penalty> penalties);

} // namespace mneme
