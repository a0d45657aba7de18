#include "runtime/models/tokens_norm_layer.hpp"
#include "runtime/kernels/token_rows.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/var_mean.h>
#include <vector>
namespace mneme {

// Axes: K models, M tokens of all rows of a step, D channels.

std::int64_t tokens_norm_layer::kept_bytes_per_row() const {
  return 2 * shape_.tokens * static_cast<std::int64_t>(sizeof(float));
}

void tokens_norm_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const {
  if (!in.is_cpu())
    return composite_forward(pass, in, out);
  const auto tokens = pass.rows * shape_.tokens, values = tokens * shape_.channels;
  reshape_buffer(kept, {pass.models, tokens, 2}, in); // mean and 1 / deviation
  for (std::int64_t k = 0; k < pass.models; ++k)
    kernels::normalise_rows(out.mutable_data_ptr<float>() + k * values, kept.mutable_data_ptr<float>() + k * tokens * 2,
                            {.x = in.const_data_ptr<float>() + k * values,
                             .weight = pass.weights_of(k) + shape_.weight_offset,
                             .bias = pass.weights_of(k) + shape_.bias_offset,
                             .rows = tokens,
                             .columns = shape_.channels,
                             .epsilon = static_cast<float>(shape_.epsilon)});
}

void tokens_norm_layer::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const {
  if (!data.in.is_cpu())
    return composite_backward(pass, data, sink);
  const auto tokens = pass.rows * shape_.tokens, values = tokens * shape_.channels;
  std::vector<double> sums; // of the weight's gradient, then of the bias's
  for (std::int64_t k = 0; k < pass.models; ++k) {
    sums.assign(static_cast<std::size_t>(shape_.frozen ? 0 : 2 * shape_.channels), 0.0);
    auto* const d_weight = shape_.frozen ? nullptr : sums.data();
    kernels::normalise_rows_backward(data.d_in ? data.d_in->mutable_data_ptr<float>() + k * values : nullptr, d_weight,
                                     shape_.frozen ? nullptr : d_weight + shape_.channels,
                                     data.d_out.const_data_ptr<float>() + k * values,
                                     data.kept.const_data_ptr<float>() + k * tokens * 2,
                                     {.x = data.in.const_data_ptr<float>() + k * values,
                                      .weight = pass.weights_of(k) + shape_.weight_offset,
                                      .rows = tokens,
                                      .columns = shape_.channels});
    float* const gradient = sink.into.mutable_data_ptr<float>() + k * sink.into.stride(0);
    const auto deliver = [&](float& to, double value) {
      to = static_cast<float>(sink.scale * value) + (sink.add ? to : 0.0F);
    };
    for (std::int64_t c = 0; c < shape_.channels && !shape_.frozen; ++c) {
      deliver(gradient[shape_.weight_offset + c], d_weight[c]);
      deliver(gradient[shape_.bias_offset + c], d_weight[shape_.channels + c]);
    }
  }
}

// -- with LibTorch's operators, all models at once --------------------------------------------------------------------

struct tokens_norm_layer::parts {
  at::Tensor h;            // [K, M, D] normalised
  at::Tensor scale;        // [K, M, 1]
  at::Tensor weight, bias; // [K, 1, D]
};

tokens_norm_layer::parts tokens_norm_layer::composite_parts(const layer_pass& pass, const at::Tensor& in) const {
  const auto x = in.view({pass.models, -1, shape_.channels});
  const auto [variance, mean] = at::var_mean(x, at::OptionalIntArrayRef({2}), 0, true);
  const auto scale = at::rsqrt(variance + shape_.epsilon);
  return {(x - mean) * scale, scale, parameter_view(pass, shape_.weight_offset, 1, shape_.channels),
          parameter_view(pass, shape_.bias_offset, 1, shape_.channels)};
}

void tokens_norm_layer::composite_forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out) const {
  const auto parts = composite_parts(pass, in);
  out.view({pass.models, -1, shape_.channels}).copy_(parts.h * parts.weight + parts.bias);
}

void tokens_norm_layer::composite_backward(const layer_pass& pass, const backward_data& data,
                                           const gradient_sink& sink) const {
  const auto parts = composite_parts(pass, data.in);
  const auto d = data.d_out.view({pass.models, -1, shape_.channels});
  if (data.d_in) {
    const auto g = d * parts.weight;
    data.d_in->view({pass.models, -1, shape_.channels})
        .copy_(parts.scale * (g - g.mean(2, true) - parts.h * (g * parts.h).mean(2, true)));
  }
  if (shape_.frozen)
    return;
  write_gradients(sink, shape_.weight_offset, (d * parts.h).sum(1));
  write_gradients(sink, shape_.bias_offset, d.sum(1));
}

// -- as a function ----------------------------------------------------------------------------------------------------

at::Tensor tokens_norm_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto x = in.reshape({pass.models, -1, shape_.channels});
  const auto [variance, mean] = at::var_mean(x, at::OptionalIntArrayRef({2}), 0, true);
  const auto y =
      (x - mean) * at::rsqrt(variance + shape_.epsilon) * pass.weights_at(shape_.weight_offset, {1, shape_.channels}) +
      pass.weights_at(shape_.bias_offset, {1, shape_.channels});
  return y.reshape(in.sizes());
}

} // namespace mneme
