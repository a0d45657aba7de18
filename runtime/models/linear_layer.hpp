/// linear_layer: y = x W^T + b, then the activation.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// A head has a row per class and computes those of the pass only.
class linear_layer final : public layer {
public:
  struct shape {
    std::int64_t in = 0, out = 0;
    std::int64_t weight_offset = 0, bias_offset = 0;
    activation after = activation::none;
    bool head = false;
  };
  explicit linear_layer(const shape& what) : shape_(what) {}
  [[nodiscard]] std::int64_t width(class_range classes) const override {
    return shape_.head ? classes.size() : shape_.out;
  }
  void forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  [[nodiscard]] bool owns_gradient() const override { return shape_.after == activation::relu; }
  void backward(const layer_pass& of, const backward_data& data, const gradient_sink& sink) const override;
  void composite_forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out) const;
  void composite_backward(const layer_pass& of, const backward_data& data, const gradient_sink& sink) const;

private:
  [[nodiscard]] class_range rows_of(class_range classes) const {
    return shape_.head ? classes : class_range{0, shape_.out};
  }
  shape shape_;
};

} // namespace mneme
