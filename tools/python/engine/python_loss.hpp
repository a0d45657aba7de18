/// python_loss: loss or penalty written in Python, with gradients by torch's autograd, computed one model at a time.
#pragma once
#include "runtime/method/differentiable_loss.hpp"
#include <nanobind/nanobind.h>
#include <string_view>
namespace mneme {

namespace nb = nanobind;

/// A Python function and the names of its arguments, which determine what it receives. Without names it receives logits
/// and labels by position.
struct python_function {
  nb::object call{};
  std::string name{};
  std::vector<std::string> arguments{};

  [[nodiscard]] bool reads(std::string_view argument) const;
  /// True for a penalty: a function of `weights`, whose other arguments are `start` and `side`.
  [[nodiscard]] bool is_penalty() const { return reads("weights"); }
};

/// Base class that holds the function, because differentiable_loss keeps a pointer to its name.
struct python_loss_function {
  python_function function_;
};

// Axes: R rows of a step without padding, C classes of the loss, D features, T classes of the teacher, n weights.

/// A loss returns one value per row [R]. Its arguments are `logits` [R, C], `labels` [R], `features` [R, D],
/// `teacher_logits` [R, T], `row_weight` [R] and `side`, the job's tensors by name. The values are weighted by
/// row_weight. A penalty returns one number for the trained `weights` [n], `start` [n], the weights at the start of the
/// job, and `side`. The penalty is called for each contiguous part of the trained weights, and the results are added
/// up. Tensors of one axis in `side` that are longer than the part are cut to it. All arguments are passed by name.
class python_loss final : private python_loss_function, public differentiable_loss {
public:
  /// @param identity losses with equal identities are the same and may share a batch
  python_loss(python_function function, const std::string& identity);
  ~python_loss() override;
  python_loss(const python_loss&) = delete;
  python_loss& operator=(const python_loss&) = delete;
  [[nodiscard]] const python_function& function() const noexcept { return function_; }

  [[nodiscard]] bool regularizes() const override { return function_.is_penalty(); }
  void regularize(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset, const tensor_map* auxiliary,
                  at::Tensor& gradients) const override {
    add_penalty(1.0, weights, start, offset, auxiliary, gradients);
  }
  /// Like regularize(), with the penalty multiplied by `factor`.
  void add_penalty(double factor, const at::Tensor& weights, const at::Tensor& start, std::int64_t offset,
                   const tensor_map* auxiliary, at::Tensor& gradients) const;
  [[nodiscard]] std::vector<loss_term> penalties(const at::Tensor& weights, const at::Tensor& start,
                                                 std::int64_t offset, const tensor_map* auxiliary) const override;

private:
  [[nodiscard]] std::vector<at::Tensor> row_values(const loss_rows& in) const;
  [[nodiscard]] at::Tensor penalty_of(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset,
                                      const tensor_map* auxiliary) const;
};

} // namespace mneme
