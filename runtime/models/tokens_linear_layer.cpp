#include "runtime/models/tokens_linear_layer.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/normalisation.hpp"
#include "runtime/models/aligned_product.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sum.h>
namespace mneme {

// Axes: K models, B rows of a step, T tokens of a row, M = B T.

void tokens_linear_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                                  at::Tensor& /*kept*/) const {
  if (!in.is_cpu())
    return composite_forward(pass, in, out);
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto own = pass.weights_row(k);
    const auto weight = own.narrow(0, shape_.weight_offset, shape_.out * shape_.in).view({shape_.out, shape_.in});
    const auto bias = own.narrow(0, shape_.bias_offset, shape_.out);
    auto y = out.select(0, k).view({-1, shape_.out}); // [M, out]
    aligned_product(y, bias, in.select(0, k).view({-1, shape_.in}), weight.t(), shape_.scale, shape_.scale,
                    *pass.memory);
    if (shape_.after == activation::relu)
      kernels::relu(y.mutable_data_ptr<float>(), y.numel());
  }
}

void tokens_linear_layer::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const {
  if (!data.in.is_cpu())
    return composite_backward(pass, data, sink);
  if (shape_.after == activation::relu)
    kernels::relu_backward(data.d_out.mutable_data_ptr<float>(), data.out.const_data_ptr<float>(), data.d_out.numel());
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto d = data.d_out.select(0, k).view({-1, shape_.out}); // [M, out]
    if (data.d_in) {
      const auto weight = pass.weights_row(k).narrow(0, shape_.weight_offset, shape_.out * shape_.in);
      auto d_in = data.d_in->select(0, k).view({-1, shape_.in});
      aligned_product(d_in, d_in, d, weight.view({shape_.out, shape_.in}), data.add ? 1.0 : 0.0, shape_.scale,
                      *pass.memory);
    }
    if (!shape_.frozen)
      back_parameters(pass, k, data.in.select(0, k).view({-1, shape_.in}), d, sink);
  }
}

/// @param x [M, in] @param d [M, out]
void tokens_linear_layer::back_parameters(const layer_pass& pass, std::int64_t k, const at::Tensor& x,
                                          const at::Tensor& d, const gradient_sink& sink) const {
  const auto scale = sink.scale * static_cast<float>(shape_.scale);
  const auto gradient = sink.into.select(0, k);
  auto d_weight = gradient.narrow(0, shape_.weight_offset, shape_.out * shape_.in).view({shape_.out, shape_.in});
  aligned_product(d_weight, d_weight, d.t(), x, sink.add ? 1.0 : 0.0, scale, *pass.memory);
  kernels::sum_columns(gradient.mutable_data_ptr<float>() + shape_.bias_offset, d.const_data_ptr<float>(), d.size(0),
                       shape_.out, scale, sink.add);
}

// -- with LibTorch's operators, all models at once --------------------------------------------------------------------

void tokens_linear_layer::composite_forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out) const {
  const auto weight = parameter_view(pass, shape_.weight_offset, shape_.out, shape_.in); // [K, out, in]
  const auto bias = parameter_view(pass, shape_.bias_offset, 1, shape_.out);             // [K, 1, out]
  auto y = out.view({pass.models, -1, shape_.out});                                      // [K, M, out]
  at::baddbmm_out(y, bias, in.view({pass.models, -1, shape_.in}), weight.transpose(1, 2), shape_.scale, shape_.scale);
  if (shape_.after == activation::relu)
    at::relu_(out);
}

void tokens_linear_layer::composite_backward(const layer_pass& pass, const backward_data& data,
                                             const gradient_sink& sink) const {
  if (shape_.after == activation::relu)
    data.d_out.masked_fill_(data.out <= 0, 0);
  const auto d = data.d_out.view({pass.models, -1, shape_.out}); // [K, M, out]
  if (data.d_in) {
    auto d_in = data.d_in->view({pass.models, -1, shape_.in});
    at::baddbmm_out(d_in, d_in, d, parameter_view(pass, shape_.weight_offset, shape_.out, shape_.in),
                    data.add ? 1.0 : 0.0, shape_.scale);
  }
  if (shape_.frozen)
    return;
  const auto x = data.in.view({pass.models, -1, shape_.in});
  write_gradients(sink, shape_.weight_offset, at::bmm(d.transpose(1, 2), x).mul_(shape_.scale));
  write_gradients(sink, shape_.bias_offset, d.sum(1).mul_(shape_.scale));
}

// -- as a function ----------------------------------------------------------------------------------------------------

at::Tensor tokens_linear_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto weight = pass.weights_at(shape_.weight_offset, {shape_.out, shape_.in});
  const auto bias = pass.weights_at(shape_.bias_offset, {1, shape_.out});
  const auto y = (stacked_product(in.reshape({pass.models, -1, shape_.in}), weight) + bias) * shape_.scale;
  return (shape_.after == activation::relu ? at::relu(y) : y).reshape({pass.models, pass.rows, -1});
}

} // namespace mneme
