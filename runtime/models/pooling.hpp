/// pooling: pooling layers over channels-last images.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// Maximum over square windows, by LibTorch. Padding is never the maximum. Of equal pixels the first is chosen, and of
/// several NaNs the last. Rows and columns after the last full window are ignored.
class max_pool_layer final : public kernel_layer {
public:
  struct shape {
    image_shape in{};
    std::int64_t window = 2, stride = 2, padding = 0; ///< In pixels; padding is at most half of the window.
  };
  explicit max_pool_layer(const shape& chosen);
  [[nodiscard]] image_shape out_shape() const;
  [[nodiscard]] std::int64_t width(class_range) const override { return out_shape().floats(); }
  [[nodiscard]] std::int64_t kept_bytes_per_row() const override {
    return width({}) * static_cast<std::int64_t>(sizeof(std::int64_t));
  }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  /// Returns a view [K * B, channels, height, width].
  [[nodiscard]] static at::Tensor images_of(const at::Tensor& values, const image_shape& image);
  shape shape_;
};

/// Mean of each channel over all pixels of an image.
class mean_pool_layer final : public kernel_layer {
public:
  explicit mean_pool_layer(const image_shape& in) : in_(in) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return in_.channels; }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  image_shape in_;
};

} // namespace mneme
