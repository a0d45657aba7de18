/// gelu_layer: the activation function GELU, and the approximation that CLIP uses.
#pragma once
#include "runtime/models/function_layer.hpp"
namespace mneme {

/// x Phi(x) in its exact form, without the tanh approximation (Hendrycks and Gimpel 2016).
class gelu_layer final : public kernel_layer {
public:
  explicit gelu_layer(std::int64_t width) : width_(width) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return width_; }
  [[nodiscard]] bool is_function(bool on_cpu) const override { return !on_cpu; }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  std::int64_t width_;
};

/// x sigmoid(1.702 x), the approximation of GELU in OpenAI's CLIP.
class quick_gelu_layer final : public function_layer {
public:
  explicit quick_gelu_layer(std::int64_t width) : width_(width) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return width_; }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  std::int64_t width_;
};

} // namespace mneme
