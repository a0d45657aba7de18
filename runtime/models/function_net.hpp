/// function_net: a net that is defined once, as a differentiable function of LibTorch's operators.
#pragma once
#include "runtime/models/function.hpp"
#include <optional>
namespace mneme {

// Axes: K models, B rows of a step, P weights of a model, D features, C classes.

/// Base of nets that are not graphs of layers. The models of a fused group are computed one at a time, so a model's
/// bits do not depend on the others. A pass without a backward pass computes rows in calls of one size, so a row's bits
/// do not depend on the number of rows.
class function_net : public model {
public:
  [[nodiscard]] const std::vector<parameter>& layout() const noexcept final { return layout_; }
  [[nodiscard]] std::int64_t working_set(std::int64_t rows) const final;
  [[nodiscard]] activations forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                    tape* keep, const training_mode* training) const final;
  void backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                const at::Tensor& d_features, const parameter_choice& trained, const gradient_sink& out) const final;
  [[nodiscard]] function_results differentiable(const at::Tensor& weights, const at::Tensor& inputs,
                                                class_range classes, const function_mode& mode) const final;

protected:
  /// Arguments of one model's pass.
  struct model_pass {
    /// Parameters in the order of the layout, with the shapes that they have in files. A head has only the rows of
    /// `classes`.
    std::span<const at::Tensor> values{};
    const at::Tensor& images;                ///< [B, C, H, W]
    class_range classes{};                   ///< Empty: the pass ends at the features.
    const training_mode* training = nullptr; ///< Null: evaluation mode.
    rng_key stream{};                        ///< Key from which the pass's random streams derive; read in training by
                                             ///< nets that draw.
    std::span<const std::string> maps{};     ///< Requested maps, a subset of maps().
  };
  /// Results of one model's pass.
  struct model_results {
    at::Tensor features{};          ///< [B, D]
    at::Tensor logits{};            ///< [B, classes], or undefined
    std::vector<at::Tensor> maps{}; ///< [B, C, height, width] each: the maps that were requested.
  };
  /// Computes the pass by operators that autograd can differentiate to any order, in the dtype of the weights.
  [[nodiscard]] virtual model_results apply(const model_pass& pass) const = 0;
  /// Estimated floats per row that a pass keeps until the backward pass.
  [[nodiscard]] virtual std::int64_t row_floats() const = 0;
  /// C, H, W of an input row.
  [[nodiscard]] virtual std::array<std::int64_t, 3> input() const = 0;

  /// Appends a parameter to the layout and sets its offset and size. @return its index in the layout
  std::size_t add_parameter(parameter entry);
  /// Freezes the parameters `chosen` [layout] in place; with_frozen() calls it on a copy. @pre no training has begun
  void hold(const std::vector<bool>& chosen) { hold_parameters(layout_, chosen); }

private:
  struct followed_pass;
  [[nodiscard]] std::vector<at::Tensor> values_of(const at::Tensor& weights, class_range classes) const;
  [[nodiscard]] rng_key stream_of(const training_mode* training, std::int64_t k) const;
  [[nodiscard]] model_results in_calls(const model_pass& pass) const;
  void backward_model(const followed_pass& passed, class_range classes, const std::vector<at::Tensor>& gradients,
                      const parameter_choice& trained, const at::Tensor& into, const gradient_sink& out) const;

  std::vector<parameter> layout_;
};

} // namespace mneme
