/// optimizer_calls: arguments of the device kernels for one step of adjacent models, and constants of all optimizers.
#pragma once
#include "runtime/kernels/cuda/optimizer_steps.hpp"
#include "runtime/training/optimizers.hpp"
#include <vector>
namespace mneme {

// Axes: K models, P weights of a model.

inline constexpr double adam_first_decay = 0.9, adam_second_decay = 0.999, adam_epsilon = 1e-8; // PyTorch's defaults
inline constexpr double clip_epsilon = 1e-6; // the value of torch.nn.utils.clip_grad_norm_

/// Factors of one step for the kernels. @param rate the segment's rate (segment::rate) @param t number of the step,
/// from 1
[[nodiscard]] kernels::sgd_step sgd_step_of(const training_options& options, double rate);
[[nodiscard]] kernels::adam_step adam_step_of(const training_options& options, double rate, std::int64_t t);

/// Adjacent models of a fused group that take a step: rows first .. first + count - 1 of tensors [K, P]. Rows may have
/// any stride.
struct models_in_step {
  [[nodiscard]] double rate() const { return trained.empty() ? 1.0 : trained.front().rate; }

  const at::Tensor& weights;
  const at::Tensor& gradients;
  const at::Tensor& first;          ///< Momentum, or first moments; may be undefined.
  const at::Tensor& second;         ///< Second moments; may be undefined.
  std::span<const segment> trained; ///< All segments have the same rate.
  model_run run{};
};

/// Arguments of the calls of the SGD kernel. Usually one call is enough, but a launch has a limited number of segments.
[[nodiscard]] std::vector<kernels::cuda::sgd_models> sgd_calls(const models_in_step& models,
                                                               const training_options& options);
/// Arguments of the calls of the Adam kernel. A launch has a limited number of segments and models.
/// @param step_of [run.count] number of each model's step, from 1
[[nodiscard]] std::vector<kernels::cuda::adam_models>
adam_calls(const models_in_step& models, const training_options& options, std::span<const std::int64_t> step_of);

/// Arguments of the kernels for clipping, in the order of their launches.
struct clip_calls {
  std::vector<kernels::cuda::squares_of_models> squares{};
  kernels::cuda::clip_factors factors{};
  std::vector<kernels::cuda::scaled_models> scaled{};
};
/// Arguments for clipping each model's gradient norm to `norm_max`.
/// @param partial [run.count, norm_lanes] float64, zeros @param factor [run.count] float32, scratch memory
[[nodiscard]] clip_calls calls_to_clip(const models_in_step& models, double norm_max, at::Tensor& partial,
                                       at::Tensor& factor);

} // namespace mneme
