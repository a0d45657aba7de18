/// python_loss: loss or penalty written in Python, with gradients by torch's autograd.
#pragma once
#include "runtime/method/differentiable_loss.hpp"
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <nanobind/nanobind.h>
#include <string_view>
namespace mneme {

namespace nb = nanobind;

/// A Python function and the names of its arguments, which determine what it receives. Without names it receives logits
/// and labels by position.
struct python_function {
  nb::object call{};
  nb::object batched{}; ///< torch.func.vmap of `call`, with positional arguments; None if it cannot be batched.
  std::string name{};
  std::vector<std::string> arguments{};

  [[nodiscard]] bool reads(std::string_view argument) const;
  [[nodiscard]] bool reads_features() const { return reads("features") || reads("view_features"); }
  /// True for a penalty: a function of `weights`, whose other arguments are `start` and `side`.
  [[nodiscard]] bool is_penalty() const { return reads("weights"); }
  /// True for a loss that compares two views of each row (add_second_view()).
  [[nodiscard]] bool reads_views() const { return reads("view_logits") || reads("view_features"); }
};

// Axes: K models of a group, B rows of a step, R of them without padding, C classes of the loss, D features, T classes
// of the teacher, n weights.

/// A loss returns one value per row [R]. Its arguments are `logits` [R, C], `labels` [R], `features` [R, D],
/// `teacher_logits` [R, T], `row_weight` [R] and `side`, the job's tensors by name. The values are weighted by
/// row_weight. `view_logits` [R, C] and `view_features` [R, D] are outputs for the second view of the same rows, in a
/// job of add_second_view(); the other arguments are then those of the first view. A penalty returns one number for
/// the trained `weights` [n], `start` [n], the weights at the start of the job, and `side`. The penalty is called for
/// each contiguous part of the trained weights, and the results are added up. Tensors of one axis in `side` that are
/// longer than the part are cut to it. All arguments are passed by name.
///
/// One call of torch.func.vmap computes a step of several models if it gives the bits of one call per model, so that
/// results do not depend on the group. Both are compared once for each shape of a step, with random inputs. Steps with
/// padding, and functions of `side`, are computed model by model.
class python_loss final : public loss {
public:
  /// @param identity losses with equal identities are the same and may share a batch
  python_loss(python_function function, const std::string& identity);
  ~python_loss() override;
  python_loss(const python_loss&) = delete;
  python_loss& operator=(const python_loss&) = delete;
  [[nodiscard]] const python_function& function() const noexcept { return function_; }

  [[nodiscard]] std::string identity() const override { return by_model_.identity(); }
  [[nodiscard]] const char* main_term() const override { return by_model_.main_term(); }
  [[nodiscard]] loss_output operator()(const loss_input& in) const override;
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
  /// K, B, number of replayed rows, C, D, T of a step; 0 for tensors that the function does not read.
  using step_shape = std::array<std::int64_t, 6>;
  [[nodiscard]] step_shape shape_of(const loss_input& in) const;
  [[nodiscard]] bool is_batched(const loss_input& in) const;
  [[nodiscard]] bool has_bits_of_models(const step_shape& shape) const;
  [[nodiscard]] loss_output batched_step(const loss_input& in, bool is_trial) const;
  [[nodiscard]] at::Tensor batched_rows(const loss_input& in, bool is_trial) const;
  [[nodiscard]] at::Tensor weight_of(const loss_input& in) const;
  [[nodiscard]] std::vector<at::Tensor> row_values(const loss_rows& in) const;
  [[nodiscard]] at::Tensor values_of(const loss_rows& in, const loss_rows& second_view) const;
  [[nodiscard]] at::Tensor checked(const std::function<at::Tensor()>& call) const;
  [[nodiscard]] at::Tensor called_with(const loss_rows& in, const loss_rows& second_view) const;
  [[nodiscard]] at::Tensor called_with(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset,
                                       const tensor_map* auxiliary) const;
  [[nodiscard]] at::Tensor penalty_of(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset,
                                      const tensor_map* auxiliary) const;

  python_function function_;
  differentiable_loss by_model_;                 // calls the function for each model
  mutable std::mutex mutex_{};                   // of batches_
  mutable std::map<step_shape, bool> batches_{}; // true: batched_step() has the bits of by_model_
  mutable std::atomic<int> unchecked_calls_{64}; // calls that checked() still makes twice
};

} // namespace mneme
