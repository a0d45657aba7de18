#include "runtime/models/convolution_layer.hpp"
#include "runtime/base/check.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/normalisation.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
namespace mneme {

convolution_layer::convolution_layer(const shape& sizes) : shape_(sizes) {
  MNEME_CHECK(0 < shape_.kernel && shape_.kernel <= 15, shape_.kernel); // as kernels::convolve takes them
  MNEME_CHECK(out_shape().height > 0 && out_shape().width > 0, shape_.in.height, shape_.in.width, shape_.kernel);
}

kernels::conv_shape convolution_layer::geometry(std::int64_t rows) const {
  return {.rows = rows,
          .height = shape_.in.height,
          .width = shape_.in.width,
          .channels = shape_.in.channels,
          .filters = shape_.filters,
          .kernel = shape_.kernel,
          .stride = shape_.stride,
          .padding = shape_.padding};
}

image_shape convolution_layer::out_shape() const {
  const auto shape = geometry(1);
  return {shape.out_height(), shape.out_width(), shape_.filters};
}

void convolution_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                                at::Tensor& /*kept*/) const {
  if (!in.is_cpu())
    return composite_forward(pass, in, out);
  const auto in_floats = pass.rows * shape_.in.floats(), out_floats = pass.rows * width({});
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const float* const w = pass.weights_of(k);
    kernels::convolve(geometry(pass.rows), in.const_data_ptr<float>() + k * in_floats, w + shape_.weight_offset,
                      biased() ? w + shape_.bias_offset : nullptr, shape_.after == activation::relu,
                      out.mutable_data_ptr<float>() + k * out_floats, *pass.memory);
  }
}

void convolution_layer::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const {
  if (!data.in.is_cpu())
    return composite_backward(pass, data, sink);
  const auto in_floats = pass.rows * shape_.in.floats(), out_floats = pass.rows * width({});
  const auto pixels = pass.rows * out_shape().pixels();
  for (std::int64_t k = 0; k < pass.models; ++k) {
    float* const d = data.d_out.mutable_data_ptr<float>() + k * out_floats;
    float* const gradient = sink.into.mutable_data_ptr<float>() + k * sink.into.stride(0);
    const float* const y = data.out.const_data_ptr<float>() + k * out_floats;
    float* const d_bias = gradient + shape_.bias_offset;
    const bool relu = shape_.after == activation::relu, sums = biased() && !data.fixed;
    if (relu && sums)
      kernels::sum_shown(d_bias, d, y, pixels, shape_.filters, sink.scale, sink.add);
    else if (relu)
      kernels::relu_backward(d, y, out_floats);
    else if (sums)
      kernels::sum_columns(d_bias, d, pixels, shape_.filters, sink.scale, sink.add);
    if (data.d_in)
      kernels::convolve_back(geometry(pass.rows), d, pass.weights_of(k) + shape_.weight_offset,
                             data.d_in->mutable_data_ptr<float>() + k * in_floats, data.add, *pass.memory);
    if (!data.fixed)
      kernels::correlate(geometry(pass.rows), data.in.const_data_ptr<float>() + k * in_floats, d,
                         gradient + shape_.weight_offset, sink.scale, sink.add, *pass.memory);
  }
}

// -- with LibTorch's operators, one model after the other -------------------------------------------------------------

at::Tensor images_of(const at::Tensor& whole, std::int64_t k, const image_shape& image) {
  return whole[k].view({whole.size(1), image.height, image.width, image.channels}).permute({0, 3, 1, 2});
}

at::Tensor convolution_layer::filters_of(const layer_pass& pass, std::int64_t k) const {
  const auto size = shape_.kernel * shape_.kernel * shape_.in.channels * shape_.filters;
  return pass.weights_row(k)
      .narrow(0, shape_.weight_offset, size)
      .view({shape_.kernel, shape_.kernel, shape_.in.channels, shape_.filters})
      .permute({3, 2, 0, 1});
}

void convolution_layer::composite_forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out) const {
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto bias = biased() ? pass.weights_row(k).narrow(0, shape_.bias_offset, shape_.filters) : at::Tensor{};
    images_of(out, k, out_shape())
        .copy_(at::convolution(images_of(in, k, shape_.in), filters_of(pass, k), bias, {shape_.stride, shape_.stride},
                               {shape_.padding, shape_.padding}, {1, 1}, false, {0, 0}, 1));
  }
  if (shape_.after == activation::relu)
    at::relu_(out);
}

void convolution_layer::composite_backward(const layer_pass& pass, const backward_data& data,
                                           const gradient_sink& sink) const {
  if (shape_.after == activation::relu)
    data.d_out.masked_fill_(data.out <= 0, 0);
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto [d_in, d_filters, d_bias] = at::convolution_backward(
        images_of(data.d_out, k, out_shape()), images_of(data.in, k, shape_.in), filters_of(pass, k),
        at::OptionalIntArrayRef({shape_.filters}), {shape_.stride, shape_.stride}, {shape_.padding, shape_.padding},
        {1, 1}, false, {0, 0}, 1, {data.d_in != nullptr, !data.fixed, biased() && !data.fixed});
    if (data.d_in && data.add)
      images_of(*data.d_in, k, shape_.in).add_(d_in);
    else if (data.d_in)
      images_of(*data.d_in, k, shape_.in).copy_(d_in);
    if (data.fixed)
      continue;
    write_gradient(sink, k, shape_.weight_offset, d_filters.permute({2, 3, 1, 0}).contiguous());
    if (biased())
      write_gradient(sink, k, shape_.bias_offset, d_bias);
  }
}

// -- as a function ----------------------------------------------------------------------------------------------------

at::Tensor convolution_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto filters =
      pass.weights_at(shape_.weight_offset, {shape_.kernel, shape_.kernel, shape_.in.channels, shape_.filters});
  const auto bias = biased() ? pass.weights_at(shape_.bias_offset, {shape_.filters}) : at::Tensor{};
  std::vector<at::Tensor> results;
  for (std::int64_t k = 0; k < pass.models; ++k) { // copies: each model's operands begin at a line
    const auto from = filters.size(0) == 1 ? 0 : k;
    const auto own = filters.select(0, from).permute({3, 2, 0, 1}).clone(at::MemoryFormat::Contiguous);
    const auto images = images_of(in, k, shape_.in).clone(at::MemoryFormat::Contiguous);
    const auto y =
        at::convolution(images, own, biased() ? bias.select(0, from).clone() : at::Tensor{},
                        {shape_.stride, shape_.stride}, {shape_.padding, shape_.padding}, {1, 1}, false, {0, 0}, 1);
    results.push_back(y.permute({0, 2, 3, 1}).flatten(1));
  }
  const auto y = at::stack(results);
  return shape_.after == activation::relu ? at::relu(y) : y;
}

} // namespace mneme
