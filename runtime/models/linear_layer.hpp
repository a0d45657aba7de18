/// linear_layer: y = x W^T + b, then the activation.
#pragma once
#include "runtime/models/dense.hpp"
#include "runtime/models/layer.hpp"
namespace mneme {

/// A head has one output per class; a pass computes only the outputs of its classes.
class linear_layer final : public kernel_layer {
public:
  explicit linear_layer(const dense_layer& shape) : shape_(shape) {}
  [[nodiscard]] const dense_layer& shape() const noexcept { return shape_; }
  [[nodiscard]] std::int64_t width(class_range classes) const override {
    return shape_.head ? classes.size() : shape_.out;
  }
  [[nodiscard]] bool is_function(bool on_cpu) const override { return !on_cpu; }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  [[nodiscard]] bool owns_gradient() const override { return shape_.after == activation::relu; }
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  dense_layer shape_;
};

} // namespace mneme
