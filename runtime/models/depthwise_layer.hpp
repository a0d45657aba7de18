/// depthwise_layer: a convolution of each channel with its own filter (Howard et al. 2017, MobileNets).
#pragma once
#include "runtime/models/function_layer.hpp"
namespace mneme {

/// A result is a sum over kernel^2 values of one channel, which LibTorch adds in the same order for any number of rows.
/// Zero padding is TensorFlow's "same": it is equal on both sides, or has one pixel less before the image than after
/// it.
class depthwise_layer final : public function_layer {
public:
  struct shape {
    image_shape in{};
    std::int64_t kernel = 3, stride = 1;
    std::int64_t weight_offset = 0; ///< [kernel, kernel, channels] within [P]
  };
  explicit depthwise_layer(const shape& chosen) : shape_(chosen) {}
  [[nodiscard]] image_shape out_shape() const;
  [[nodiscard]] std::int64_t width(class_range) const override { return out_shape().floats(); }

  /// Zero padding {before, after} of an axis with `extent` pixels, in pixels.
  [[nodiscard]] static std::array<std::int64_t, 2> padding_of(std::int64_t extent, std::int64_t kernel,
                                                              std::int64_t stride);
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  [[nodiscard]] at::Tensor applied(const at::Tensor& images, const at::Tensor& filters) const;

  shape shape_;
};

/// ReLU6: min(max(x, 0), 6).
class relu6_layer final : public function_layer {
public:
  explicit relu6_layer(std::int64_t width) : width_(width) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return width_; }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  std::int64_t width_;
};

} // namespace mneme
