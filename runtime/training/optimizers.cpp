#include "runtime/training/optimizers.hpp"
#include "runtime/base/check.hpp"
#include "runtime/kernels/cuda/on_device.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/training/optimizer_calls.hpp"
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <cmath>
#include <optional>
namespace mneme {
namespace {

float* floats_of(const at::Tensor& whole, std::int64_t k) {
  return whole.mutable_data_ptr<float>() + k * whole.stride(0);
}

/// Tensor [K, P] with the row stride, and hence the alignment, of `like`. On a CPU the contents are undefined. On a
/// device they are zeros, because the kernels read them in the first step. @param memory tensor to reuse on a CPU; may
/// be null
at::Tensor other_moments(const at::Tensor& like, at::Tensor* memory) {
  MNEME_CHECK(like.stride(0) >= like.size(1) && like.stride(1) == 1, like.sizes(), like.strides());
  const auto floats = like.size(0) * like.stride(0);
  at::Tensor whole;
  if (!like.is_cpu())
    whole = at::zeros({floats}, like.options());
  else if (!memory)
    whole = at::empty({floats}, like.options());
  else if (memory->defined() && memory->numel() >= floats)
    whole = memory->narrow(0, 0, floats);
  else
    whole = *memory = at::empty({floats}, like.options());
  return whole.view({like.size(0), like.stride(0)}).narrow(1, 0, like.size(1));
}

// Number of weights of one model that fit the first-level cache while they are clipped and updated.
constexpr std::int64_t block_floats = 2048;

} // namespace

optimizer::optimizer(const training_options& options, std::vector<segment> trained, at::Tensor weights,
                     at::Tensor gradients, moment_buffers* memory)
    : options_(options), trained_(std::move(trained)), weights_(std::move(weights)), gradients_(std::move(gradients)),
      begun_(static_cast<std::size_t>(weights_.size(0))) {
  const bool adaptive = options_.optimizer != optimizer_kind::sgd;
  if (adaptive || options_.momentum != 0.0)
    first_ = other_moments(weights_, memory ? &memory->first : nullptr);
  if (adaptive)
    second_ = other_moments(weights_, memory ? &memory->second : nullptr);
}

std::int64_t optimizer::buffers(const training_options& options) {
  if (options.result != training_result::weights)
    return 2; // for gradients and the result
  if (options.optimizer != optimizer_kind::sgd)
    return 3; // for gradients and two moments
  return is_plain_sgd(options) ? 0 : options.momentum != 0.0 ? 2 : 1;
}

void optimizer::step(model_run run, std::span<const std::int64_t> step_of) {
  MNEME_CHECK(std::ssize(step_of) == run.count, step_of.size(), run.count);
  if (!weights_.is_cpu())
    return step_on_device(run, step_of);
  for (std::int64_t k = run.first; k < run.first + run.count; ++k)
    step_alone(k, step_of[static_cast<std::size_t>(k - run.first)]);
}

void optimizer::step_on_device(model_run run, std::span<const std::int64_t> step_of) {
  if (options_.clip_norm > 0.0)
    clip_on_device(run);
  for (auto begin = trained_.begin(); begin != trained_.end();) { // all segments of a kernel call have the same rate
    const auto end =
        std::find_if(begin, trained_.end(), [&](const segment& piece) { return piece.rate != begin->rate; });
    const models_in_step models{weights_, gradients_, first_, second_, std::span(begin, end), run};
    begin = end;
    if (options_.optimizer == optimizer_kind::sgd)
      for (const auto& call : sgd_calls(models, options_))
        kernels::cuda::start_on(weights_.device(), call);
    else
      for (const auto& call : adam_calls(models, options_, step_of))
        kernels::cuda::start_on(weights_.device(), call);
  }
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

/// Factor of at most 1 that clips model k's gradients to clip_norm.
float optimizer::clip_factor(std::int64_t k) const {
  if (options_.clip_norm <= 0.0)
    return 1.0F;
  const float* const g = gradients_.const_data_ptr<float>() + k * gradients_.stride(0);
  double squares = 0.0;
  for (const auto& piece : trained_)
    kernels::add_squares(squares, g + piece.offset, piece.size);
  return static_cast<float>(std::min(options_.clip_norm / (std::sqrt(squares) + clip_epsilon), 1.0));
}

/// Makes step number `taken` of model k on a CPU. Clips and updates block by block, so that each weight is loaded once.
void optimizer::step_alone(std::int64_t k, std::int64_t taken) {
  const float factor = clip_factor(k);
  const bool adaptive = options_.optimizer != optimizer_kind::sgd;
  const bool begins = !begun_[static_cast<std::size_t>(k)];
  kernels::sgd_step slow{};
  kernels::adam_step adapted{};
  std::optional<double> rate; // rate for which `slow` and `adapted` were computed
  for (const auto& piece : trained_) {
    if (piece.rate != rate) {
      slow = sgd_step_of(options_, piece.rate);
      adapted = adaptive ? adam_step_of(options_, piece.rate, taken) : adapted; // reuses factors, because powers are
                                                                                // expensive
      rate = piece.rate;
    }
    for (std::int64_t at = piece.offset, end = piece.offset + piece.size; at < end; at += block_floats) {
      const auto n = std::min(block_floats, end - at);
      float *const w = floats_of(weights_, k) + at, *const g = floats_of(gradients_, k) + at;
      float* const m = first_.defined() ? floats_of(first_, k) + at : nullptr;
      float* const v = second_.defined() ? floats_of(second_, k) + at : nullptr;
      if (begins && m)
        std::fill_n(m, n, 0.0F);
      if (begins && v)
        std::fill_n(v, n, 0.0F);
      if (factor < 1.0F)
        kernels::scale(g, n, factor);
      if (adaptive)
        kernels::adam(w, g, m, v, n, adapted);
      else
        kernels::sgd(w, g, m, n, slow);
    }
  }
  begun_[static_cast<std::size_t>(k)] = true;
}

} // namespace mneme
