#include "runtime/models/layout_layers.hpp"
#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
namespace mneme {

void channels_last_layer::forward(const layer_pass&, const at::Tensor& in, at::Tensor& out,
                                  at::Tensor& /*kept*/) const {
  out.view({-1, in_.pixels(), in_.channels}).copy_(in.view({-1, in_.channels, in_.pixels()}).transpose(1, 2));
}

void channels_last_layer::backward(const layer_pass&, const backward_data& data, const gradient_sink&) const {
  if (data.d_in)
    data.d_in->view({-1, in_.channels, in_.pixels()})
        .copy_(data.d_out.view({-1, in_.pixels(), in_.channels}).transpose(1, 2));
}

void flat_rows_layer::forward(const layer_pass&, const at::Tensor& in, at::Tensor& out, at::Tensor& /*kept*/) const {
  out.view({-1, in_.channels, in_.pixels()}).copy_(in.view({-1, in_.pixels(), in_.channels}).transpose(1, 2));
}

void flat_rows_layer::backward(const layer_pass&, const backward_data& data, const gradient_sink&) const {
  if (data.d_in)
    data.d_in->view({-1, in_.pixels(), in_.channels})
        .copy_(data.d_out.view({-1, in_.channels, in_.pixels()}).transpose(1, 2));
}

at::Tensor subsampling_layer::taken(const at::Tensor& images) const {
  return images.slice(1, 0, std::nullopt, stride_).slice(2, 0, std::nullopt, stride_);
}

void subsampling_layer::forward(const layer_pass&, const at::Tensor& in, at::Tensor& out, at::Tensor& /*kept*/) const {
  const auto shape = out_shape();
  auto images = out.view({-1, shape.height, shape.width, shape.channels});
  images.narrow(3, 0, first_).zero_();
  images.narrow(3, first_, in_.channels).copy_(taken(in.view({-1, in_.height, in_.width, in_.channels})));
  images.narrow(3, first_ + in_.channels, channels_ - first_ - in_.channels).zero_();
}

void subsampling_layer::backward(const layer_pass&, const backward_data& data, const gradient_sink&) const {
  if (!data.d_in)
    return;
  const auto shape = out_shape();
  data.d_in->zero_();
  taken(data.d_in->view({-1, in_.height, in_.width, in_.channels}))
      .copy_(data.d_out.view({-1, shape.height, shape.width, shape.channels}).narrow(3, first_, in_.channels));
}

// -- as a differentiable function -------------------------------------------------------------------------------------

at::Tensor channels_last_layer::function(const function_pass&, const at::Tensor& in) const {
  return in.reshape({in.size(0), in.size(1), in_.channels, in_.pixels()}).transpose(2, 3).flatten(2);
}

at::Tensor flat_rows_layer::function(const function_pass& pass, const at::Tensor& in) const {
  static_cast<void>(pass);
  if (lies_flat_ || in_.channels == 1 || in_.pixels() == 1)
    return in;
  return in.reshape({in.size(0), in.size(1), in_.pixels(), in_.channels}).transpose(2, 3).flatten(2);
}

at::Tensor subsampling_layer::function(const function_pass&, const at::Tensor& in) const {
  const auto images = taken(in.reshape({-1, in_.height, in_.width, in_.channels}));
  return at::constant_pad_nd(images, {first_, channels_ - first_ - in_.channels}).reshape({in.size(0), in.size(1), -1});
}

} // namespace mneme
