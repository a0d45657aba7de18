/// best_epoch: the weights after the epoch in which a client's net took most rows for their class.
#pragma once
#include "runtime/training/optimizers.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
namespace mneme {

// Axes: K clients of a group, P weights of a model, B rows of a step.

/// The first epoch of equal ones, and the start where no row was taken for its class.
class best_epoch {
public:
  /// @param weights [K, P] that all clients start with
  void begin(const at::Tensor& weights) {
    weights_ = weights.clone();
    right_ = at::zeros({weights.size(0)}, weights.options().dtype(at::kLong));
    best_right_ = at::zeros_like(right_);
  }
  /// Counts a step's rows that the net takes for their class; no label of a padded row is one.
  /// @param logits [count, B, classes] @param labels [count, B]
  void count(model_run run, const at::Tensor& logits, const at::Tensor& labels) {
    right_.narrow(0, run.first, run.count).add_(logits.detach().argmax(2).eq(labels).sum(1));
  }
  /// Keeps the epoch's weights, client by client, where more rows were right than in any before.
  void end_epoch(const at::Tensor& weights) {
    weights_ = at::where(right_.gt(best_right_).unsqueeze(1), weights, weights_);
    best_right_ = at::maximum(best_right_, right_);
    right_.zero_();
  }
  /// [K, P]; undefined where nothing has begun.
  [[nodiscard]] const at::Tensor& weights() const noexcept { return weights_; }

private:
  at::Tensor right_, best_right_; // [K] int64: rows of the present epoch, and of the best
  at::Tensor weights_;            // [K, P] after the best
};

} // namespace mneme
