#include "runtime/models/tokens_linear_layer.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/normalization.hpp"
#include "runtime/models/aligned_product.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/relu.h>
namespace mneme {

// Axes: K models, B rows of a step, T tokens of a row, M = B T.

void tokens_linear_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                                  at::Tensor& /*kept*/) const {
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
    if (!shape_.frozen && !data.fixed)
      backward_parameters(pass, k, data.in.select(0, k).view({-1, shape_.in}), d, sink);
  }
}

/// Gradients of weight and bias of model k. @param x [M, in] @param d [M, out]
void tokens_linear_layer::backward_parameters(const layer_pass& pass, std::int64_t k, const at::Tensor& x,
                                              const at::Tensor& d, const gradient_sink& sink) const {
  const auto scale = sink.scale * static_cast<float>(shape_.scale);
  const auto gradient = sink.into.select(0, k);
  auto d_weight = gradient.narrow(0, shape_.weight_offset, shape_.out * shape_.in).view({shape_.out, shape_.in});
  aligned_product(d_weight, d_weight, d.t(), x, sink.add ? 1.0 : 0.0, scale, *pass.memory);
  kernels::sum_columns(gradient.mutable_data_ptr<float>() + shape_.bias_offset, d.const_data_ptr<float>(), d.size(0),
                       shape_.out, scale, sink.add);
}

// -- as a differentiable function -------------------------------------------------------------------------------------

at::Tensor tokens_linear_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto weight = pass.weights_at(shape_.weight_offset, {shape_.out, shape_.in});
  const auto bias = pass.weights_at(shape_.bias_offset, {1, shape_.out});
  const auto y = (stacked_product(in.reshape({pass.models, -1, shape_.in}), weight) + bias) * shape_.scale;
  return (shape_.after == activation::relu ? at::relu(y) : y).reshape({pass.models, pass.rows, -1});
}

} // namespace mneme
