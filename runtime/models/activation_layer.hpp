/// activation_layer: a function of every value by itself, as a layer of its own.
#pragma once
#include "runtime/models/function_layer.hpp"
namespace mneme {

/// PyTorch's functions of these names. A ReLU is part of the layer before it instead.
class activation_layer final : public function_layer {
public:
  /// @param slope leaky: factor of values below zero @pre `kind` is neither none nor relu
  activation_layer(std::int64_t width, activation kind, double slope);
  [[nodiscard]] std::int64_t width(class_range) const override { return width_; }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  std::int64_t width_;
  activation kind_;
  double slope_;
};

} // namespace mneme
