/// activation_layer: an elementwise activation function as a separate layer.
#pragma once
#include "runtime/models/function_layer.hpp"
namespace mneme {

/// Leaky ReLU, sigmoid, tanh or SiLU, as in PyTorch. ReLU is not among them, because the layer before a ReLU computes
/// it.
class activation_layer final : public function_layer {
public:
  /// @param slope factor of negative values, used by leaky only @pre `kind` is neither none nor relu
  activation_layer(std::int64_t width, activation kind, double slope);
  [[nodiscard]] std::int64_t width(class_range) const override { return width_; }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  std::int64_t width_;
  activation kind_;
  double slope_;
};

} // namespace mneme
