/// convolution_layer: a convolution over channels-last images, with or without bias, then the activation.
#pragma once
#include "runtime/kernels/convolution.hpp"
#include "runtime/models/layer.hpp"
namespace mneme {

/// Model k's part of `whole` [K, B, floats of an image] as LibTorch takes images: [B, channels, height, width].
[[nodiscard]] at::Tensor images_of(const at::Tensor& whole, std::int64_t k, const image_shape& image);

/// Filters lie [kernel, kernel, channels, filters] in memory: rows of the matrix that patches are multiplied by.
class convolution_layer final : public layer {
public:
  struct shape {
    image_shape in{};
    std::int64_t filters = 0, kernel = 1, stride = 1, padding = 0;
    std::int64_t weight_offset = 0, bias_offset = -1; ///< -1: no bias
    activation after = activation::none;
  };
  explicit convolution_layer(const shape& sizes);
  [[nodiscard]] image_shape out_shape() const;
  [[nodiscard]] std::int64_t width(class_range) const override { return out_shape().floats(); }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  [[nodiscard]] bool owns_gradient() const override { return shape_.after == activation::relu; }
  [[nodiscard]] bool adds() const override { return true; }
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;
  void composite_forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out) const;
  void composite_backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const;

private:
  [[nodiscard]] kernels::conv_shape geometry(std::int64_t rows) const;
  [[nodiscard]] bool biased() const { return shape_.bias_offset >= 0; }
  /// Model k's filters, [filters, channels, kernel, kernel].
  [[nodiscard]] at::Tensor filters_of(const layer_pass& pass, std::int64_t k) const;

  shape shape_;
};

} // namespace mneme
