/// sequential_loop: LibTorch loop that trains one client after the other, with autograd and one optimizer step per
/// parameter.
#pragma once
#include "tools/bench/loops/training_loop.hpp"
namespace mneme::bench {

/// Base of the sequential loops. Derived classes add the weights and the forward pass of a net.
class bare_loop : public training_loop {
public:
  bare_loop(const workload& load, std::vector<at::Tensor> start);
  void round(std::int64_t number, std::span<const std::int64_t> cohort) final;
  [[nodiscard]] double weights_norm() const final;

protected:
  /// Returns the logits [B, classes] of pixels x [B, F].
  [[nodiscard]] virtual at::Tensor forward(const at::Tensor& x, const std::vector<at::Tensor>& weights) const = 0;

private:
  void train(const at::Tensor& rows); // rows: [n] int64, in training order

  workload workload_;
  population population_;
  std::vector<at::Tensor> start_, weights_, sum_; // one tensor per parameter
};

} // namespace mneme::bench
