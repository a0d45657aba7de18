#include "runtime/optimizers.hpp"
#include "runtime/check.hpp"
#include "runtime/kernels/elementwise.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <cmath>
namespace mneme {
namespace {

constexpr double first_decay = 0.9, second_decay = 0.999, epsilon = 1e-8; // PyTorch's defaults
constexpr double clip_epsilon = 1e-6;                                     // of torch.nn.utils.clip_grad_norm_

float* row_of(const at::Tensor& all, std::int64_t k) { return all.mutable_data_ptr<float>() + k * all.stride(0); }

/// A segment of the run's models: [count, n].
at::Tensor part(const at::Tensor& all, model_run run, const segment& piece) {
  return all.narrow(0, run.first, run.count).narrow(1, piece.offset, piece.size);
}

/// One number per model as a column [count, 1] on the device of `like`.
at::Tensor column(const std::vector<float>& values, const at::Tensor& like) {
  return at::tensor(values, at::kFloat).to(like.device()).unsqueeze(1);
}

/// What Adam multiplies with at step t of one model.
struct adam_rates {
  double step_size, root_correction;
};
adam_rates rates(double learning_rate, std::int64_t t) {
  const auto steps = static_cast<double>(t);
  return {.step_size = learning_rate / (1.0 - std::pow(first_decay, steps)),
          .root_correction = std::sqrt(1.0 - std::pow(second_decay, steps))};
}

} // namespace

optimizer::optimizer(const training_options& options, std::vector<segment> trained, at::Tensor weights,
                     at::Tensor gradients)
    : options_(options), trained_(std::move(trained)), weights_(std::move(weights)), gradients_(std::move(gradients)),
      composite_(!weights_.is_cpu()) {
  const bool adaptive = options_.optimizer != optimizer_kind::sgd;
  if (adaptive || options_.momentum != 0.0)
    first_ = at::zeros(weights_.sizes(), weights_.options());
  if (adaptive)
    second_ = at::zeros(weights_.sizes(), weights_.options());
}

std::int64_t optimizer::buffers(const training_options& options) {
  if (options.optimizer != optimizer_kind::sgd)
    return 3; // gradients and two moments
  return is_plain_sgd(options) ? 0 : options.momentum != 0.0 ? 2 : 1;
}

void optimizer::step(model_run run, std::span<const std::int64_t> step_of) {
  MNEME_CHECK(std::ssize(step_of) == run.count, step_of.size(), run.count);
  const bool adaptive = options_.optimizer != optimizer_kind::sgd;
  if (options_.clip_norm > 0.0)
    composite_ ? composite_clip(run) : clip(run);
  if (adaptive)
    composite_ ? composite_adam(run, step_of) : adam(run, step_of);
  else
    composite_ ? composite_sgd(run) : sgd(run);
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

void optimizer::composite_clip(model_run run) {
  auto squares = at::zeros({run.count}, gradients_.options().dtype(at::kDouble));
  for (const auto& piece : trained_)
    squares += part(gradients_, run, piece).to(at::kDouble).square().sum(1);
  const auto factor = (options_.clip_norm / (squares.sqrt() + clip_epsilon)).clamp_max(1.0).to(at::kFloat);
  for (const auto& piece : trained_)
    part(gradients_, run, piece).mul_(factor.unsqueeze(1));
}

void optimizer::sgd(model_run run) {
  const kernels::sgd_step with{.learning_rate = static_cast<float>(options_.learning_rate),
                               .momentum = static_cast<float>(options_.momentum),
                               .weight_decay = static_cast<float>(options_.weight_decay)};
  for (std::int64_t k = run.first; k < run.first + run.count; ++k)
    for (const auto& piece : trained_)
      kernels::sgd(row_of(weights_, k) + piece.offset, row_of(gradients_, k) + piece.offset,
                   first_.defined() ? row_of(first_, k) + piece.offset : nullptr, piece.size, with);
}

void optimizer::composite_sgd(model_run run) {
  for (const auto& piece : trained_) {
    auto w = part(weights_, run, piece);
    auto change = part(gradients_, run, piece);
    if (options_.weight_decay != 0.0)
      change = change + w * options_.weight_decay;
    if (first_.defined())
      change = part(first_, run, piece).mul_(options_.momentum).add_(change);
    w.add_(change, -options_.learning_rate);
  }
}

void optimizer::adam(model_run run, std::span<const std::int64_t> step_of) {
  const bool decoupled = options_.optimizer == optimizer_kind::adamw;
  for (std::int64_t k = run.first; k < run.first + run.count; ++k) {
    const auto now = rates(options_.learning_rate, step_of[k - run.first]);
    const kernels::adam_step with{
        .first = static_cast<float>(first_decay),
        .second = static_cast<float>(second_decay),
        .epsilon = static_cast<float>(epsilon),
        .decay = decoupled ? 0.0F : static_cast<float>(options_.weight_decay),
        .shrink = decoupled ? static_cast<float>(1.0 - options_.learning_rate * options_.weight_decay) : 1.0F,
        .step_size = static_cast<float>(now.step_size),
        .root_correction = static_cast<float>(now.root_correction)};
    for (const auto& piece : trained_)
      kernels::adam(row_of(weights_, k) + piece.offset, row_of(gradients_, k) + piece.offset,
                    row_of(first_, k) + piece.offset, row_of(second_, k) + piece.offset, piece.size, with);
  }
}

void optimizer::composite_adam(model_run run, std::span<const std::int64_t> step_of) {
  std::vector<float> sizes, roots;
  for (const auto t : step_of) {
    const auto now = rates(options_.learning_rate, t);
    sizes.push_back(static_cast<float>(now.step_size));
    roots.push_back(static_cast<float>(now.root_correction));
  }
  const auto step_size = column(sizes, weights_), root = column(roots, weights_);
  for (const auto& piece : trained_) {
    auto w = part(weights_, run, piece), m = part(first_, run, piece), v = part(second_, run, piece);
    auto g = part(gradients_, run, piece);
    if (options_.optimizer == optimizer_kind::adamw)
      w.mul_(1.0 - options_.learning_rate * options_.weight_decay);
    else if (options_.weight_decay != 0.0)
      g = g + w * options_.weight_decay;
    m.add_(g - m, 1.0 - first_decay);
    v.mul_(second_decay).addcmul_(g, g, 1.0 - second_decay);
    w.sub_(step_size * m / (v.sqrt() / root + epsilon));
  }
}

} // namespace mneme
