/// reference_optimizer: optimizer steps with ATen operations, as reference for kernels.
#pragma once
#include "runtime/training/optimizers.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include <cmath>
namespace mneme::test {

// Axes: K models, P weights of a model.

/// Optimizer with the interface of mneme::optimizer, for CPU tensors.
class reference_optimizer {
public:
  reference_optimizer(const training_options& options, std::vector<segment> trained, at::Tensor weights,
                      at::Tensor gradients)
      : options_(options), trained_(std::move(trained)), weights_(std::move(weights)), gradients_(std::move(gradients)),
        first_(at::zeros_like(weights_)), second_(at::zeros_like(weights_)) {}

  void step(model_run run, std::span<const std::int64_t> step_of) {
    if (options_.clip_norm > 0.0)
      clip(run);
    for (std::int64_t k = 0; k < run.count; ++k)
      for (const auto& piece : trained_) {
        const auto part = [&](const at::Tensor& rows) {
          return rows.select(0, run.first + k).narrow(0, piece.offset, piece.size);
        };
        if (options_.optimizer == optimizer_kind::sgd)
          sgd(part(weights_), part(gradients_), part(first_));
        else
          adam(part(weights_), part(gradients_), part(first_), part(second_),
               static_cast<double>(step_of[static_cast<std::size_t>(k)]));
      }
  }

private:
  /// torch.nn.utils.clip_grad_norm_ of each model, over its trained parameters.
  void clip(model_run run) {
    for (auto k = run.first; k < run.first + run.count; ++k) {
      auto squares = at::zeros({}, at::kDouble);
      for (const auto& piece : trained_)
        squares += gradients_[k].narrow(0, piece.offset, piece.size).to(at::kDouble).square().sum();
      const auto factor = (options_.clip_norm / (squares.sqrt() + 1e-6)).clamp_max(1.0).to(at::kFloat);
      for (const auto& piece : trained_)
        gradients_[k].narrow(0, piece.offset, piece.size).mul_(factor);
    }
  }

  /// torch.optim.SGD without dampening.
  void sgd(at::Tensor w, const at::Tensor& g, at::Tensor velocity) const {
    velocity.mul_(options_.momentum).add_(g + w * options_.weight_decay);
    w.sub_(velocity, options_.learning_rate);
  }

  /// torch.optim.Adam and AdamW at step t.
  void adam(at::Tensor w, const at::Tensor& gradient, at::Tensor m, at::Tensor v, double t) const {
    const bool decoupled = options_.optimizer == optimizer_kind::adamw;
    const auto g = decoupled ? gradient : gradient + w * options_.weight_decay;
    if (decoupled)
      w.mul_(1.0 - options_.learning_rate * options_.weight_decay);
    m.mul_(0.9).add_(g, 0.1);
    v.mul_(0.999).addcmul_(g, g, 0.001);
    const auto root = (v / (1.0 - std::pow(0.999, t))).sqrt() + 1e-8;
    w.sub_(m / root, options_.learning_rate / (1.0 - std::pow(0.9, t)));
  }

  training_options options_;
  std::vector<segment> trained_;
  at::Tensor weights_, gradients_, first_, second_; // [K, P]
};

} // namespace mneme::test
