/// lbfgs: limited-memory BFGS without line search, step by step, as PyTorch's optimizer of that name computes it.
#pragma once
#include <ATen/core/Tensor.h>
#include <map>
#include <string>
#include <vector>
namespace mneme {

/// The state of one variable x [n] float32 (Liu and Nocedal 1989; torch.optim.LBFGS with its defaults: 20 iterations a
/// step, 25 evaluations, a history of 100, tolerances 1e-7 and 1e-9). Whoever evaluates the objective asks where, and
/// tells what it is there; many variables are evaluated together like that.
class lbfgs {
public:
  lbfgs() = default; ///< For load().
  lbfgs(at::Tensor start, double learning_rate) : x_(std::move(start)), rate_(learning_rate) {}
  [[nodiscard]] const at::Tensor& x() const noexcept { return x_; } ///< Where the objective is wanted.
  /// The objective at x() is `value` with `gradient` [n]. Returns true while the step goes on: x() has moved, and the
  /// objective is wanted there. After false the next call begins a step.
  [[nodiscard]] bool tell(double value, const at::Tensor& gradient);
  [[nodiscard]] std::map<std::string, at::Tensor> save() const;
  void load(const std::map<std::string, at::Tensor>& saved);

private:
  [[nodiscard]] at::Tensor direction(const at::Tensor& gradient);

  at::Tensor x_, direction_, gradient_before_;
  std::vector<at::Tensor> changes_, moves_; // of the gradient and of x, oldest first
  std::vector<double> inverses_;            // 1 / (change . move)
  double rate_ = 1.0, length_ = 1.0, scale_ = 1.0, value_before_ = 0.0;
  std::int64_t iterations_ = 0, of_step_ = 0, evaluations_ = 0; // in all; of the step under way
};

} // namespace mneme
