/// layout_layers: layers without parameters that change the memory layout of images.
#pragma once
#include "runtime/base/ceil_div.hpp"
#include "runtime/models/layer.hpp"
namespace mneme {

/// Converts images of data sets, [channels, height, width], to channels last.
class channels_last_layer final : public kernel_layer {
public:
  explicit channels_last_layer(const image_shape& in) : in_(in) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return in_.floats(); }
  [[nodiscard]] bool is_pass_through(const layer_pass&) const override {
    return in_.channels == 1 || in_.pixels() == 1;
  }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  image_shape in_;
};

/// Converts channels-last images to flat rows in channels-first order, like PyTorch's flatten.
class flat_rows_layer final : public kernel_layer {
public:
  /// @param lies_flat true: the images are already channels first, as a net's inputs are
  flat_rows_layer(const image_shape& in, bool lies_flat) : in_(in), lies_flat_(lies_flat) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return in_.floats(); }
  [[nodiscard]] bool is_pass_through(const layer_pass&) const override {
    return lies_flat_ || in_.channels == 1 || in_.pixels() == 1;
  }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  image_shape in_;
  bool lies_flat_;
};

/// The parameter-free shortcut of a residual block that halves the image: every second pixel, and zeros for the added
/// channels (He et al. 2016, "Deep Residual Learning", section 3.3, option A). The zero channels follow the input
/// channels, or half of them precede and half of them follow these channels.
class subsampling_layer final : public kernel_layer {
public:
  /// @param first index of the first input channel among `channels`; the channels before it are zero
  subsampling_layer(const image_shape& in, std::int64_t stride, std::int64_t channels, std::int64_t first = 0)
      : in_(in), stride_(stride), channels_(channels), first_(first) {}
  [[nodiscard]] image_shape out_shape() const {
    return {ceil_div(in_.height, stride_), ceil_div(in_.width, stride_), channels_};
  }
  [[nodiscard]] std::int64_t width(class_range) const override { return out_shape().floats(); }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  /// Returns every stride-th pixel of images [n, height, width, channels], a view.
  [[nodiscard]] at::Tensor taken(const at::Tensor& images) const;

  image_shape in_;
  std::int64_t stride_, channels_, first_;
};

} // namespace mneme
