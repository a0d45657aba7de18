#include "runtime/models/pooling.hpp"
#include "runtime/base/check.hpp"
#include "runtime/kernels/pooling.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/mean.h>
namespace mneme {

max_pool_layer::max_pool_layer(const shape& chosen) : shape_(chosen) {
  MNEME_CHECK(0 < shape_.window && 0 < shape_.stride && 2 * shape_.padding <= shape_.window, shape_.window,
              shape_.stride, shape_.padding);
}

image_shape max_pool_layer::out_shape() const {
  const auto windows = [&](std::int64_t pixels) {
    return (pixels + 2 * shape_.padding - shape_.window) / shape_.stride + 1;
  };
  return {windows(shape_.in.height), windows(shape_.in.width), shape_.in.channels};
}

at::Tensor max_pool_layer::images_of(const at::Tensor& values, const image_shape& image) {
  return values.view({-1, image.height, image.width, image.channels}).permute({0, 3, 1, 2});
}

void max_pool_layer::forward(const layer_pass&, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const {
  reshape_buffer(kept, out.sizes(), out, at::kLong); // kept: index of the largest pixel of each window
  auto largest = images_of(out, out_shape()), winners = images_of(kept, out_shape());
  at::max_pool2d_with_indices_out(largest, winners, images_of(in, shape_.in), {shape_.window, shape_.window},
                                  {shape_.stride, shape_.stride}, {shape_.padding, shape_.padding});
}

void max_pool_layer::backward(const layer_pass&, const backward_data& data, const gradient_sink& /*sink*/) const {
  if (!data.d_in)
    return;
  auto d_images = images_of(*data.d_in, shape_.in);
  at::max_pool2d_with_indices_backward_out(d_images, images_of(data.d_out, out_shape()), images_of(data.in, shape_.in),
                                           {shape_.window, shape_.window}, {shape_.stride, shape_.stride},
                                           {shape_.padding, shape_.padding}, {1, 1}, false,
                                           images_of(data.kept, out_shape()));
}

void mean_pool_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                              at::Tensor& /*kept*/) const {
  const auto images = in.view({pass.models, pass.rows, in_.pixels(), in_.channels});
  if (!in.is_cpu())
    at::mean_out(out, images, 2);
  else
    kernels::mean_pool(pass.models * pass.rows, in_.pixels(), in_.channels, in.const_data_ptr<float>(),
                       out.mutable_data_ptr<float>());
}

void mean_pool_layer::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& /*sink*/) const {
  if (!data.d_in)
    return;
  auto d_images = data.d_in->view({pass.models, pass.rows, in_.pixels(), in_.channels});
  d_images.copy_((data.d_out / static_cast<double>(in_.pixels())).unsqueeze(2).expand_as(d_images));
}

// -- as a differentiable function -------------------------------------------------------------------------------------

at::Tensor max_pool_layer::function(const function_pass&, const at::Tensor& in) const {
  const auto largest = at::max_pool2d(images_of(in.contiguous(), shape_.in), {shape_.window, shape_.window},
                                      {shape_.stride, shape_.stride}, {shape_.padding, shape_.padding});
  return largest.permute({0, 2, 3, 1}).reshape({in.size(0), in.size(1), -1});
}

at::Tensor mean_pool_layer::function(const function_pass&, const at::Tensor& in) const {
  return in.reshape({in.size(0), in.size(1), in_.pixels(), in_.channels}).mean(2);
}

} // namespace mneme
