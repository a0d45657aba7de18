#include "runtime/models/tokens_norm_layer.hpp"
#include "runtime/kernels/token_rows.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/var_mean.h>
#include <vector>
namespace mneme {

// Axes: K models, M tokens of all rows of a step, D channels.

std::int64_t tokens_norm_layer::kept_bytes_per_row() const {
  return 2 * shape_.tokens * static_cast<std::int64_t>(sizeof(float));
}

void tokens_norm_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const {
  const auto tokens = pass.rows * shape_.tokens, values = tokens * shape_.channels;
  reshape_buffer(kept, {pass.models, tokens, 2}, in); // kept: mean and 1 / standard deviation
  for (std::int64_t k = 0; k < pass.models; ++k)
    kernels::normalize_rows(out.mutable_data_ptr<float>() + k * values, kept.mutable_data_ptr<float>() + k * tokens * 2,
                            {.x = in.const_data_ptr<float>() + k * values,
                             .weight = pass.weights_of(k) + shape_.weight_offset,
                             .bias = pass.weights_of(k) + shape_.bias_offset,
                             .rows = tokens,
                             .columns = shape_.channels,
                             .epsilon = static_cast<float>(shape_.epsilon)});
}

void tokens_norm_layer::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const {
  const auto tokens = pass.rows * shape_.tokens, values = tokens * shape_.channels;
  std::vector<double> sums; // gradients of the weight, followed by those of the bias
  const bool fixed = shape_.frozen || data.fixed;
  for (std::int64_t k = 0; k < pass.models; ++k) {
    sums.assign(static_cast<std::size_t>(fixed ? 0 : 2 * shape_.channels), 0.0);
    auto* const d_weight = fixed ? nullptr : sums.data();
    kernels::normalize_rows_backward(data.d_in ? data.d_in->mutable_data_ptr<float>() + k * values : nullptr, d_weight,
                                     fixed ? nullptr : d_weight + shape_.channels,
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
    for (std::int64_t c = 0; c < shape_.channels && !fixed; ++c) {
      deliver(gradient[shape_.weight_offset + c], d_weight[c]);
      deliver(gradient[shape_.bias_offset + c], d_weight[shape_.channels + c]);
    }
  }
}

// -- as a differentiable function -------------------------------------------------------------------------------------

at::Tensor tokens_norm_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto x = in.reshape({pass.models, -1, shape_.channels});
  const auto [variance, mean] = at::var_mean(x, at::OptionalIntArrayRef({2}), false, true);
  const auto y =
      (x - mean) * at::rsqrt(variance + shape_.epsilon) * pass.weights_at(shape_.weight_offset, {1, shape_.channels}) +
      pass.weights_at(shape_.bias_offset, {1, shape_.channels});
  return y.reshape(in.sizes());
}

} // namespace mneme
