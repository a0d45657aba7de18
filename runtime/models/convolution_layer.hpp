/// convolution_layer: a convolution over channels-last images, with or without bias, then the activation.
#pragma once
#include "runtime/kernels/winograd.hpp"
#include "runtime/models/composite_convolution.hpp"
namespace mneme {

/// Filters are stored as [kernel, kernel, channels, filters]: the right-hand matrix of a product with image patches.
class convolution_layer final : public kernel_layer {
public:
  struct shape {
    image_shape in{};
    std::int64_t filters = 0, kernel = 1, stride = 1, padding = 0;
    std::int64_t weight_offset = 0, bias_offset = -1; ///< Offsets within a model's weights [P]; bias -1: none.
    activation after = activation::none;
  };
  explicit convolution_layer(const shape& sizes);
  [[nodiscard]] image_shape out_shape() const;
  [[nodiscard]] std::int64_t width(class_range) const override { return out_shape().floats(); }
  [[nodiscard]] bool depends_on_row_count() const override { return !kernels::winograd_pays(geometry(1)); }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  [[nodiscard]] bool owns_gradient() const override { return shape_.after == activation::relu; }
  [[nodiscard]] bool adds() const override { return true; }
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  void composite_forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out) const {
    composite().forward(pass, in, out);
  }
  void composite_backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const {
    composite().backward(pass, data, sink);
  }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  [[nodiscard]] kernels::conv_shape geometry(std::int64_t rows) const;
  /// True if the Winograd kernels compute this layer for `in`.
  [[nodiscard]] bool is_transformed(const at::Tensor& in) const {
    return in.is_cpu() && kernels::winograd_pays(geometry(1));
  }
  void backward_to_results(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const;
  [[nodiscard]] bool biased() const { return shape_.bias_offset >= 0; }
  [[nodiscard]] composite_convolution composite() const;

  shape shape_;
};

} // namespace mneme
