/// optimizer_calls: one step of a run of models as calls of device kernels, and the numbers all kernels share.
#pragma once
#include "runtime/kernels/cuda/optimizer_steps.hpp"
#include "runtime/training/optimizers.hpp"
#include <vector>
namespace mneme {

// Axes: K models, P weights of a model.

inline constexpr double adam_first_decay = 0.9, adam_second_decay = 0.999, adam_epsilon = 1e-8; // PyTorch's defaults
inline constexpr double clip_epsilon = 1e-6; // of torch.nn.utils.clip_grad_norm_

/// What the kernels multiply with. @param rate segment::rate @param t steps taken, the present one included
[[nodiscard]] kernels::sgd_step sgd_step_of(const training_options& options, double rate);
[[nodiscard]] kernels::adam_step adam_step_of(const training_options& options, double rate, std::int64_t t);

/// The run of a fused group that takes a step: rows first .. first + count - 1 of tensors [K, P], whose rows may lie
/// further apart than P.
struct models_in_step {
  [[nodiscard]] double rate() const { return trained.empty() ? 1.0 : trained.front().rate; }

  const at::Tensor& weights;
  const at::Tensor& gradients;
  const at::Tensor& first;          ///< Momentum, or first moments; may be undefined.
  const at::Tensor& second;         ///< Second moments; may be undefined.
  std::span<const segment> trained; ///< They have one rate.
  model_run run{};
};

/// Launches hold a limited number of pieces, and of models with numbers of their own: mostly there is one.
[[nodiscard]] std::vector<kernels::cuda::sgd_models> sgd_calls(const models_in_step& models,
                                                               const training_options& options);
/// @param step_of [run.count] steps each model has taken, this one included
[[nodiscard]] std::vector<kernels::cuda::adam_models>
adam_calls(const models_in_step& models, const training_options& options, std::span<const std::int64_t> step_of);

/// Clipping, in this order.
struct clip_calls {
  std::vector<kernels::cuda::squares_of_models> squares{};
  kernels::cuda::clip_factors factors{};
  std::vector<kernels::cuda::scaled_models> scaled{};
};
/// @param partial [run.count, norm_lanes] float64, zeros @param factor [run.count] float32
[[nodiscard]] clip_calls calls_to_clip(const models_in_step& models, double norm_max, at::Tensor& partial,
                                       at::Tensor& factor);

} // namespace mneme
