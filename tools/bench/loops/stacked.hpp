/// stacked: trains K clients together by adding an axis to every tensor, the usual way to amortize the overhead of
/// operators in small nets.
#pragma once
#include "tools/bench/loops/training_loop.hpp"
namespace mneme::bench {

/// A loop over groups of K clients. Derived classes add a training step.
class stacked_loop : public training_loop {
public:
  /// @param start one tensor per parameter, without axis K, in the layout of weights_
  stacked_loop(const workload& load, std::vector<at::Tensor> start);
  void round(std::int64_t number, std::span<const std::int64_t> cohort) final;
  [[nodiscard]] double weights_norm() const final;

protected:
  /// Trains on one batch per model. @param x [K, B, F] @param labels [K * B]
  virtual void take_step(const at::Tensor& x, const at::Tensor& labels) = 0;
  /// Runs the backward pass of the sum of all losses, and takes a step. Each model's loss is the mean over its own
  /// rows.
  void step_by_autograd(const at::Tensor& logits, const at::Tensor& labels); // [K, B, classes], [K * B]

  workload workload_;
  std::vector<at::Tensor> weights_; // [K, ...] for each parameter

private:
  void train(std::int64_t number, std::span<const std::int64_t> group);
  [[nodiscard]] at::Tensor group_rows(std::int64_t number, std::span<const std::int64_t> group) const;

  population population_;
  std::vector<at::Tensor> start_, sum_; // shaped like weights_, but without axis K
};

} // namespace mneme::bench
