#include "runtime/training/optimizers.hpp"
#include "runtime/base/check.hpp"
#include "runtime/kernels/cuda/on_device.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/training/optimizer_calls.hpp"
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <cmath>
namespace mneme {
namespace {

float* row_of(const at::Tensor& whole, std::int64_t k) { return whole.mutable_data_ptr<float>() + k * whole.stride(0); }

/// Zeros as [K, P], with rows as far apart as those of `like`: what is aligned there is aligned here.
at::Tensor zeros_beside(const at::Tensor& like) {
  MNEME_CHECK(like.stride(0) >= like.size(1) && like.stride(1) == 1, like.sizes(), like.strides());
  return at::zeros({like.size(0), like.stride(0)}, like.options()).narrow(1, 0, like.size(1));
}

} // namespace

optimizer::optimizer(const training_options& options, std::vector<segment> trained, at::Tensor weights,
                     at::Tensor gradients)
    : options_(options), trained_(std::move(trained)), weights_(std::move(weights)), gradients_(std::move(gradients)) {
  const bool adaptive = options_.optimizer != optimizer_kind::sgd;
  if (adaptive || options_.momentum != 0.0)
    first_ = zeros_beside(weights_);
  if (adaptive)
    second_ = zeros_beside(weights_);
}

std::int64_t optimizer::buffers(const training_options& options) {
  if (options.result != training_result::weights)
    return 2; // gradients and what is made of them
  if (options.optimizer != optimizer_kind::sgd)
    return 3; // gradients and two moments
  return is_plain_sgd(options) ? 0 : options.momentum != 0.0 ? 2 : 1;
}

void optimizer::step(model_run run, std::span<const std::int64_t> step_of) {
  MNEME_CHECK(std::ssize(step_of) == run.count, step_of.size(), run.count);
  if (!weights_.is_cpu())
    return step_on_device(run, step_of);
  if (options_.clip_norm > 0.0)
    clip(run);
  if (options_.optimizer == optimizer_kind::sgd)
    sgd(run);
  else
    adam(run, step_of);
}

void optimizer::step_on_device(model_run run, std::span<const std::int64_t> step_of) {
  if (options_.clip_norm > 0.0)
    clip_on_device(run);
  const models_in_step models{weights_, gradients_, first_, second_, trained_, run};
  if (options_.optimizer == optimizer_kind::sgd)
    for (const auto& call : sgd_calls(models, options_))
      kernels::cuda::start_on(weights_.device(), call);
  else
    for (const auto& call : adam_calls(models, options_, step_of))
      kernels::cuda::start_on(weights_.device(), call);
}

void optimizer::clip_on_device(model_run run) {
  const auto& device = gradients_.device();
  auto partial = at::zeros({run.count, kernels::cuda::norm_lanes}, gradients_.options().dtype(at::kDouble));
  auto factor = at::empty({run.count}, gradients_.options());
  const auto calls =
      calls_to_clip({weights_, gradients_, first_, second_, trained_, run}, options_.clip_norm, partial, factor);
  for (const auto& call : calls.squares)
    kernels::cuda::start_on(device, call);
  kernels::cuda::start_on(device, calls.factors);
  for (const auto& call : calls.scaled)
    kernels::cuda::start_on(device, call);
}

void optimizer::clip(model_run run) {
  for (std::int64_t k = run.first; k < run.first + run.count; ++k) {
    float* const g = row_of(gradients_, k);
    double squares = 0.0;
    for (const auto& piece : trained_)
      kernels::add_squares(squares, g + piece.offset, piece.size);
    const double factor = options_.clip_norm / (std::sqrt(squares) + clip_epsilon);
    if (factor < 1.0)
      for (const auto& piece : trained_)
        kernels::scale(g + piece.offset, piece.size, static_cast<float>(factor));
  }
}

void optimizer::sgd(model_run run) {
  const auto with = sgd_step_of(options_);
  for (std::int64_t k = run.first; k < run.first + run.count; ++k)
    for (const auto& piece : trained_)
      kernels::sgd(row_of(weights_, k) + piece.offset, row_of(gradients_, k) + piece.offset,
                   first_.defined() ? row_of(first_, k) + piece.offset : nullptr, piece.size, with);
}

void optimizer::adam(model_run run, std::span<const std::int64_t> step_of) {
  for (std::int64_t k = run.first; k < run.first + run.count; ++k) {
    const auto with = adam_step_of(options_, step_of[static_cast<std::size_t>(k - run.first)]);
    for (const auto& piece : trained_)
      kernels::adam(row_of(weights_, k) + piece.offset, row_of(gradients_, k) + piece.offset,
                    row_of(first_, k) + piece.offset, row_of(second_, k) + piece.offset, piece.size, with);
  }
}

} // namespace mneme
