#include "runtime/models/convolution_layer.hpp"
#include "runtime/base/check.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/normalization.hpp"
namespace mneme {

convolution_layer::convolution_layer(const shape& sizes) : shape_(sizes) {
  MNEME_CHECK(0 < shape_.kernel, shape_.kernel);
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

composite_convolution convolution_layer::composite() const {
  return {.in = shape_.in,
          .out = out_shape(),
          .kernel = shape_.kernel,
          .stride = shape_.stride,
          .padding = shape_.padding,
          .weight_offset = shape_.weight_offset,
          .bias_offset = shape_.bias_offset,
          .after = shape_.after};
}

void convolution_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                                at::Tensor& /*kept*/) const {
  if (!is_transformed(in))
    return composite_forward(pass, in, out);
  const auto in_floats = pass.rows * shape_.in.floats(), out_floats = pass.rows * width({});
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const float* const w = pass.weights_of(k);
    kernels::winograd_convolve(geometry(pass.rows), in.const_data_ptr<float>() + k * in_floats,
                               w + shape_.weight_offset, biased() ? w + shape_.bias_offset : nullptr,
                               shape_.after == activation::relu, out.mutable_data_ptr<float>() + k * out_floats,
                               *pass.memory);
  }
}

/// Applies the gradient of the ReLU to data.d_out, in place, and delivers the gradient of the bias to `sink`.
void convolution_layer::backward_to_results(const layer_pass& pass, const backward_data& data,
                                            const gradient_sink& sink) const {
  const auto out_floats = pass.rows * width({}), pixels = pass.rows * out_shape().pixels();
  for (std::int64_t k = 0; k < pass.models; ++k) {
    float* const d = data.d_out.mutable_data_ptr<float>() + k * out_floats;
    float* const d_bias = sink.into.mutable_data_ptr<float>() + k * sink.into.stride(0) + shape_.bias_offset;
    const float* const y = data.out.const_data_ptr<float>() + k * out_floats;
    const bool relu = shape_.after == activation::relu, sums = biased() && !data.fixed;
    if (relu && sums)
      kernels::sum_active_columns(d_bias, d, y, pixels, shape_.filters, sink.scale, sink.add);
    else if (relu)
      kernels::relu_backward(d, y, out_floats);
    else if (sums)
      kernels::sum_columns(d_bias, d, pixels, shape_.filters, sink.scale, sink.add);
  }
}

void convolution_layer::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const {
  if (!data.in.is_cpu())
    return composite_backward(pass, data, sink);
  backward_to_results(pass, data, sink);
  if (!is_transformed(data.in)) {
    auto linear = composite();
    linear.after = activation::none;
    linear.bias_offset = -1;
    return linear.backward(pass, data, sink);
  }
  const auto in_floats = pass.rows * shape_.in.floats(), out_floats = pass.rows * width({});
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const float* const d = data.d_out.const_data_ptr<float>() + k * out_floats;
    float* const gradient = sink.into.mutable_data_ptr<float>() + k * sink.into.stride(0);
    if (data.d_in)
      kernels::winograd_convolve_back(geometry(pass.rows), d, pass.weights_of(k) + shape_.weight_offset,
                                      data.d_in->mutable_data_ptr<float>() + k * in_floats, data.add, *pass.memory);
    if (!data.fixed)
      kernels::winograd_correlate(geometry(pass.rows), data.in.const_data_ptr<float>() + k * in_floats, d,
                                  gradient + shape_.weight_offset, sink.scale, sink.add, *pass.memory);
  }
}

at::Tensor convolution_layer::function(const function_pass& pass, const at::Tensor& in) const {
  return composite().function(pass, in);
}

} // namespace mneme
