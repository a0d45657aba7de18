#include "runtime/training/optimizer_calls.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
namespace mneme {
namespace {

/// A segment of the run's models: [count, n].
at::Tensor part(const at::Tensor& all, model_run run, const segment& piece) {
  return all.narrow(0, run.first, run.count).narrow(1, piece.offset, piece.size);
}

/// One number per model as a column [count, 1] on the device of `like`.
at::Tensor column(const std::vector<float>& values, const at::Tensor& like) {
  return at::tensor(values, at::kFloat).to(like.device()).unsqueeze(1);
}

} // namespace

void optimizer::composite_clip(model_run run) {
  auto squares = at::zeros({run.count}, gradients_.options().dtype(at::kDouble));
  for (const auto& piece : trained_)
    squares += part(gradients_, run, piece).to(at::kDouble).square().sum(1);
  const auto factor = (options_.clip_norm / (squares.sqrt() + clip_epsilon)).clamp_max(1.0).to(at::kFloat);
  for (const auto& piece : trained_)
    part(gradients_, run, piece).mul_(factor.unsqueeze(1));
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

void optimizer::composite_adam(model_run run, std::span<const std::int64_t> step_of) {
  std::vector<float> sizes, roots;
  for (const auto t : step_of) {
    const auto now = adam_step_of(options_, t);
    sizes.push_back(now.step_size);
    roots.push_back(now.root_correction);
  }
  const auto step_size = column(sizes, weights_), root = column(roots, weights_);
  for (const auto& piece : trained_) {
    auto w = part(weights_, run, piece), m = part(first_, run, piece), v = part(second_, run, piece);
    auto g = part(gradients_, run, piece);
    if (options_.optimizer == optimizer_kind::adamw)
      w.mul_(1.0 - options_.learning_rate * options_.weight_decay);
    else if (options_.weight_decay != 0.0)
      g = g + w * options_.weight_decay;
    m.add_(g - m, 1.0 - adam_first_decay);
    v.mul_(adam_second_decay).addcmul_(g, g, 1.0 - adam_second_decay);
    w.sub_(step_size * m / (v.sqrt() / root + adam_epsilon));
  }
}

} // namespace mneme
