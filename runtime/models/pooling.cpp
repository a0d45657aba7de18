#include "runtime/models/pooling.hpp"
#include "runtime/base/check.hpp"
#include "runtime/kernels/pooling.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/mean.h>
namespace mneme {
namespace {

kernels::pool_shape geometry(const max_pool_layer::shape& shape, std::int64_t rows) {
  return {.rows = rows,
          .height = shape.in.height,
          .width = shape.in.width,
          .channels = shape.in.channels,
          .window = shape.window,
          .stride = shape.stride,
          .padding = shape.padding};
}

} // namespace

max_pool_layer::max_pool_layer(const shape& what) : shape_(what) {
  MNEME_CHECK(0 < shape_.window && shape_.window <= 15 && 2 * shape_.padding <= shape_.window, shape_.window,
              shape_.padding);
}

image_shape max_pool_layer::out_shape() const {
  const auto all = geometry(shape_, 1);
  return {all.out_height(), all.out_width(), shape_.in.channels};
}

void max_pool_layer::forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const {
  if (!in.is_cpu())
    return composite_forward(of, in, out);
  reshape_buffer(kept, out.sizes(), out, at::kByte);
  kernels::max_pool(geometry(shape_, of.models * of.rows), in.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
                    kept.mutable_data_ptr<std::uint8_t>());
}

void max_pool_layer::backward(const layer_pass& of, const backward_data& data, const gradient_sink& /*sink*/) const {
  if (!data.d_in)
    return;
  if (!data.in.is_cpu())
    return composite_backward(of, data);
  kernels::max_pool_back(geometry(shape_, of.models * of.rows), data.d_out.const_data_ptr<float>(),
                         data.kept.const_data_ptr<std::uint8_t>(), data.d_in->mutable_data_ptr<float>());
}

at::Tensor max_pool_layer::images_of(const at::Tensor& all, const image_shape& one) {
  return all.view({-1, one.height, one.width, one.channels}).permute({0, 3, 1, 2});
}

void max_pool_layer::composite_forward(const layer_pass&, const at::Tensor& in, at::Tensor& out) const {
  const std::int64_t window = shape_.window, stride = shape_.stride, padding = shape_.padding;
  images_of(out, out_shape())
      .copy_(at::max_pool2d(images_of(in, shape_.in), {window, window}, {stride, stride}, {padding, padding}));
}

void max_pool_layer::composite_backward(const layer_pass&, const backward_data& data) const {
  const std::int64_t window[] = {shape_.window, shape_.window}, stride[] = {shape_.stride, shape_.stride},
                     padding[] = {shape_.padding, shape_.padding};
  const auto images = images_of(data.in, shape_.in);
  const auto places = std::get<1>(at::max_pool2d_with_indices(images, window, stride, padding));
  images_of(*data.d_in, shape_.in)
      .copy_(at::max_pool2d_with_indices_backward(images_of(data.d_out, out_shape()), images, window, stride, padding,
                                                  {1, 1}, false, places));
}

void mean_pool_layer::forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out, at::Tensor& /*kept*/) const {
  const auto images = in.view({of.models, of.rows, in_.pixels(), in_.channels});
  if (!in.is_cpu())
    at::mean_out(out, images, 2);
  else
    kernels::mean_pool(of.models * of.rows, in_.pixels(), in_.channels, in.const_data_ptr<float>(),
                       out.mutable_data_ptr<float>());
}

void mean_pool_layer::backward(const layer_pass& of, const backward_data& data, const gradient_sink& /*sink*/) const {
  if (!data.d_in)
    return;
  auto d_images = data.d_in->view({of.models, of.rows, in_.pixels(), in_.channels});
  d_images.copy_((data.d_out / static_cast<double>(in_.pixels())).unsqueeze(2).expand_as(d_images));
}

} // namespace mneme
