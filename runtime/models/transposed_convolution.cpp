#include "runtime/models/transposed_convolution.hpp"
#include "runtime/base/check.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/normalisation.hpp"
#include "runtime/models/convolution_layer.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
namespace mneme {

// Axes: K models, B rows.

transposed_convolution_layer::transposed_convolution_layer(const shape& sizes) : shape_(sizes) {
  MNEME_CHECK(0 < shape_.kernel && shape_.kernel <= 15, shape_.kernel); // as kernels::convolve takes them
  MNEME_CHECK(0 <= shape_.further_px && shape_.further_px < shape_.stride, shape_.further_px, shape_.stride);
  MNEME_CHECK(out_shape().height > 0 && out_shape().width > 0, shape_.in.height, shape_.in.width, shape_.padding);
}

image_shape transposed_convolution_layer::out_shape() const {
  const auto side = [&](std::int64_t pixels) {
    return (pixels - 1) * shape_.stride - 2 * shape_.padding + shape_.kernel + shape_.further_px;
  };
  return {side(shape_.in.height), side(shape_.in.width), shape_.filters};
}

kernels::conv_shape transposed_convolution_layer::way_back(std::int64_t rows) const {
  const auto out = out_shape();
  return {.rows = rows,
          .height = out.height,
          .width = out.width,
          .channels = out.channels,
          .filters = shape_.in.channels,
          .kernel = shape_.kernel,
          .stride = shape_.stride,
          .padding = shape_.padding};
}

void transposed_convolution_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                                           at::Tensor& /*kept*/) const {
  if (!in.is_cpu())
    return composite_forward(pass, in, out);
  const auto in_floats = pass.rows * shape_.in.floats(), out_floats = pass.rows * width({});
  for (std::int64_t k = 0; k < pass.models; ++k) {
    float* const y = out.mutable_data_ptr<float>() + k * out_floats;
    kernels::convolve_back(way_back(pass.rows), in.const_data_ptr<float>() + k * in_floats,
                           pass.weights_of(k) + shape_.weight_offset, y, false, *pass.memory);
    if (biased())
      out.select(0, k)
          .view({-1, shape_.filters})
          .add_(pass.weights_row(k).narrow(0, shape_.bias_offset, shape_.filters));
    if (shape_.after == activation::relu)
      kernels::relu(y, out_floats);
  }
}

void transposed_convolution_layer::backward(const layer_pass& pass, const backward_data& data,
                                            const gradient_sink& sink) const {
  if (!data.in.is_cpu())
    return composite_backward(pass, data, sink);
  const auto in_floats = pass.rows * shape_.in.floats(), out_floats = pass.rows * width({});
  for (std::int64_t k = 0; k < pass.models; ++k) {
    float* const d = data.d_out.mutable_data_ptr<float>() + k * out_floats;
    float* const gradient = sink.into.mutable_data_ptr<float>() + k * sink.into.stride(0);
    if (shape_.after == activation::relu)
      kernels::relu_backward(d, data.out.const_data_ptr<float>() + k * out_floats, out_floats);
    if (biased() && !data.fixed)
      kernels::sum_columns(gradient + shape_.bias_offset, d, pass.rows * out_shape().pixels(), shape_.filters,
                           sink.scale, sink.add);
    if (data.d_in)
      kernels::convolve(way_back(pass.rows), d, pass.weights_of(k) + shape_.weight_offset, nullptr, false,
                        data.d_in->mutable_data_ptr<float>() + k * in_floats, *pass.memory);
    if (!data.fixed)
      kernels::correlate(way_back(pass.rows), d, data.in.const_data_ptr<float>() + k * in_floats,
                         gradient + shape_.weight_offset, sink.scale, sink.add, *pass.memory);
  }
}

// -- with LibTorch's operators, one model after the other -------------------------------------------------------------

/// [in channels, out channels, kernel, kernel]
at::Tensor transposed_convolution_layer::filters_of(const layer_pass& pass, std::int64_t k) const {
  const auto size = shape_.kernel * shape_.kernel * shape_.in.channels * shape_.filters;
  return pass.weights_row(k)
      .narrow(0, shape_.weight_offset, size)
      .view({shape_.kernel, shape_.kernel, shape_.filters, shape_.in.channels})
      .permute({3, 2, 0, 1});
}

at::Tensor transposed_convolution_layer::applied(const at::Tensor& images, const at::Tensor& filters,
                                                 const at::Tensor& bias) const {
  return at::convolution(images, filters, bias, {shape_.stride, shape_.stride}, {shape_.padding, shape_.padding},
                         {1, 1}, true, {shape_.further_px, shape_.further_px}, 1);
}

void transposed_convolution_layer::composite_forward(const layer_pass& pass, const at::Tensor& in,
                                                     at::Tensor& out) const {
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto bias = biased() ? pass.weights_row(k).narrow(0, shape_.bias_offset, shape_.filters) : at::Tensor{};
    images_of(out, k, out_shape()).copy_(applied(images_of(in, k, shape_.in), filters_of(pass, k), bias));
  }
  if (shape_.after == activation::relu)
    at::relu_(out);
}

void transposed_convolution_layer::composite_backward(const layer_pass& pass, const backward_data& data,
                                                      const gradient_sink& sink) const {
  if (shape_.after == activation::relu)
    data.d_out.masked_fill_(data.out <= 0, 0);
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto [d_in, d_filters, d_bias] = at::convolution_backward(
        images_of(data.d_out, k, out_shape()), images_of(data.in, k, shape_.in), filters_of(pass, k),
        at::OptionalIntArrayRef({shape_.filters}), {shape_.stride, shape_.stride}, {shape_.padding, shape_.padding},
        {1, 1}, true, {shape_.further_px, shape_.further_px}, 1,
        {data.d_in != nullptr, !data.fixed, biased() && !data.fixed});
    if (data.d_in)
      images_of(*data.d_in, k, shape_.in).copy_(d_in);
    if (data.fixed)
      continue;
    write_gradient(sink, k, shape_.weight_offset, d_filters.permute({2, 3, 1, 0}).contiguous());
    if (biased())
      write_gradient(sink, k, shape_.bias_offset, d_bias);
  }
}

// -- as a function ----------------------------------------------------------------------------------------------------

at::Tensor transposed_convolution_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto filters =
      pass.weights_at(shape_.weight_offset, {shape_.kernel, shape_.kernel, shape_.filters, shape_.in.channels});
  const auto bias = biased() ? pass.weights_at(shape_.bias_offset, {shape_.filters}) : at::Tensor{};
  std::vector<at::Tensor> results;
  for (std::int64_t k = 0; k < pass.models; ++k) { // copies: each model's operands begin at a line
    const auto from = filters.size(0) == 1 ? 0 : k;
    const auto own = filters.select(0, from).permute({3, 2, 0, 1}).clone(at::MemoryFormat::Contiguous);
    const auto images = images_of(in.contiguous(), k, shape_.in).clone(at::MemoryFormat::Contiguous);
    const auto y = applied(images, own, biased() ? bias.select(0, from).clone() : at::Tensor{});
    results.push_back(y.permute({0, 2, 3, 1}).flatten(1));
  }
  const auto y = at::stack(results);
  return shape_.after == activation::relu ? at::relu(y) : y;
}

} // namespace mneme
