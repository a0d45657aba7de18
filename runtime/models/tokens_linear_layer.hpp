/// tokens_linear_layer: y = scale (x W^T + b) for every token, then the activation.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// On a CPU LibTorch computes the products, one model at a time, because many rows share a large matrix.
class tokens_linear_layer final : public kernel_layer {
public:
  struct shape {
    std::int64_t tokens = 1, in = 0, out = 0;
    std::int64_t weight_offset = 0, bias_offset = 0;
    double scale = 1.0;
    activation after = activation::none;
    bool frozen = false; ///< true: parameters get no gradients.
  };
  explicit tokens_linear_layer(const shape& sizes) : shape_(sizes) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return shape_.tokens * shape_.out; }
  [[nodiscard]] bool depends_on_row_count() const override { return true; }
  [[nodiscard]] bool is_function(bool on_cpu) const override { return !on_cpu; }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  [[nodiscard]] bool owns_gradient() const override { return shape_.after == activation::relu; }
  [[nodiscard]] bool adds() const override { return true; }
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  void backward_parameters(const layer_pass& pass, std::int64_t k, const at::Tensor& x, const at::Tensor& d,
                           const gradient_sink& sink) const;

  shape shape_;
};

} // namespace mneme
