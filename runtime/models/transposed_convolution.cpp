#include "runtime/models/transposed_convolution.hpp"
#include "runtime/base/check.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/normalisation.hpp"
#include <ATen/TensorOperators.h>
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

composite_convolution transposed_convolution_layer::composite() const {
  return {.in = shape_.in,
          .out = out_shape(),
          .kernel = shape_.kernel,
          .stride = shape_.stride,
          .padding = shape_.padding,
          .further_px = shape_.further_px,
          .transposed = true,
          .weight_offset = shape_.weight_offset,
          .bias_offset = shape_.bias_offset,
          .after = shape_.after};
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

at::Tensor transposed_convolution_layer::function(const function_pass& pass, const at::Tensor& in) const {
  return composite().function(pass, in);
}

} // namespace mneme
