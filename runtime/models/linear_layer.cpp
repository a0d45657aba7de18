#include "runtime/models/linear_layer.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/products.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sum.h>
#include <algorithm>
namespace mneme {
namespace {

float* row_of(const at::Tensor& all, std::int64_t k) { return all.mutable_data_ptr<float>() + k * all.stride(0); }

} // namespace

void linear_layer::forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out, at::Tensor& /*kept*/) const {
  if (!in.is_cpu())
    return composite_forward(of, in, out);
  const auto rows = rows_of(of.classes);
  const float* const x = in.const_data_ptr<float>();
  float* const y = out.mutable_data_ptr<float>();
  for (std::int64_t k = 0; k < of.models; ++k) {
    const float* const w = of.weights_of(k);
    float* const result = y + k * of.rows * rows.size();
    kernels::multiply(kernels::dot_product{.a = x + k * of.rows * shape_.in,
                                           .a_row = shape_.in,
                                           .b = w + shape_.weight_offset + rows.low * shape_.in,
                                           .b_row = shape_.in,
                                           .c = result,
                                           .c_row = rows.size(),
                                           .m = of.rows,
                                           .n = rows.size(),
                                           .k = shape_.in,
                                           .bias = w + shape_.bias_offset + rows.low});
    if (shape_.after == activation::relu)
      kernels::relu(result, of.rows * rows.size());
  }
}

void linear_layer::backward(const layer_pass& of, const backward_data& data, const gradient_sink& sink) const {
  if (!data.in.is_cpu())
    return composite_backward(of, data, sink);
  const auto rows = rows_of(of.classes);
  const std::int64_t width = rows.size(), in = shape_.in;
  // Columns of the weights that stay in the second-level cache from their last reading to their change.
  constexpr std::int64_t cache_floats = std::int64_t{1} << 16U, vector_floats = 16;
  const auto panel =
      std::max(cache_floats / std::max<std::int64_t>(width, 1), 4 * vector_floats) / vector_floats * vector_floats;
  for (std::int64_t k = 0; k < of.models; ++k) {
    const float* d = data.d_out.const_data_ptr<float>() + k * of.rows * width; // [B, width]
    if (shape_.after == activation::relu)
      kernels::relu_backward(row_of(data.d_out, k), data.out.const_data_ptr<float>() + k * of.rows * width,
                             of.rows * width);
    const float* const x = data.in.const_data_ptr<float>() + k * of.rows * in;
    const float* const w = of.weights_of(k) + shape_.weight_offset + rows.low * in;
    float* const gradient = row_of(sink.into, k);
    float* const d_w = gradient + shape_.weight_offset + rows.low * in;
    for (std::int64_t first = 0; first < in; first += panel) {
      const auto columns = std::min(panel, in - first);
      if (data.d_in)
        kernels::multiply(kernels::row_product{.a = d,
                                               .a_row = width,
                                               .a_step = 1,
                                               .b = w + first,
                                               .b_step = in,
                                               .c = row_of(*data.d_in, k) + first,
                                               .c_row = in,
                                               .m = of.rows,
                                               .n = columns,
                                               .k = width});
      kernels::multiply(kernels::row_product{.a = d,
                                             .a_row = 1,
                                             .a_step = width,
                                             .b = x + first,
                                             .b_step = in,
                                             .c = d_w + first,
                                             .c_row = in,
                                             .m = width,
                                             .n = columns,
                                             .k = of.rows,
                                             .scale = sink.scale,
                                             .add = sink.add});
    }
    kernels::sum_rows(gradient + shape_.bias_offset + rows.low, d, of.rows, width, sink.scale, sink.add);
  }
}

void linear_layer::composite_forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out) const {
  const auto rows = rows_of(of.classes);
  const auto weight = parameter_view(of, shape_.weight_offset + rows.low * shape_.in, rows.size(),
                                     shape_.in);                                       // [K, out, in]
  const auto bias = parameter_view(of, shape_.bias_offset + rows.low, 1, rows.size()); // [K, 1, out]
  at::baddbmm_out(out, bias, in.view({of.models, of.rows, shape_.in}), weight.transpose(1, 2));
  if (shape_.after == activation::relu)
    at::relu_(out);
}

void linear_layer::composite_backward(const layer_pass& of, const backward_data& data,
                                      const gradient_sink& sink) const {
  const auto rows = rows_of(of.classes);
  const auto in = data.in.view({of.models, of.rows, shape_.in});
  if (shape_.after == activation::relu)
    data.d_out.masked_fill_(data.out <= 0, 0);
  if (data.d_in) {
    const auto weight = parameter_view(of, shape_.weight_offset + rows.low * shape_.in, rows.size(), shape_.in);
    at::bmm_out(*data.d_in, data.d_out, weight);
  }
  write_gradients(sink, shape_.weight_offset + rows.low * shape_.in, at::bmm(data.d_out.transpose(1, 2), in));
  write_gradients(sink, shape_.bias_offset + rows.low, data.d_out.sum(1));
}

} // namespace mneme
