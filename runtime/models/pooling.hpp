/// Pooling layers over channels-last images.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// Maximum over square windows, by LibTorch: pixels of the padding never win, the first of equals does, or the last
/// NaN. A last row or column that fills no window is left out.
class max_pool_layer final : public kernel_layer {
public:
  struct shape {
    image_shape in{};
    std::int64_t window = 2, stride = 2, padding = 0; ///< padding is at most half of the window
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
  /// A view [K * B, channels, height, width].
  [[nodiscard]] static at::Tensor images_of(const at::Tensor& values, const image_shape& image);
  shape shape_;
};

/// The mean over all pixels of an image, channel by channel.
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
