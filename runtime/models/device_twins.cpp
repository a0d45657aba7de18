// Batch normalization on devices, by LibTorch's operators with hand-written gradients. Like convolutions
// (composite_convolution.cpp), batch normalization builds no autograd graph. Other layers with parameters run as
// functions on devices.
#include "runtime/models/normalization.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/threshold_backward.h>
#include <cmath>
namespace mneme {

// -- batch normalization by LibTorch, on K * channels channels --------------------------------------------------------

/// Reshapes [K, B, floats of an image] to [pixels of a model's rows, K * channels]; a view if K = 1.
at::Tensor normalization_layer::by_channel(const layer_pass& pass, const at::Tensor& images) const {
  return images.view({pass.models, -1, shape_.in.channels})
      .transpose(0, 1)
      .reshape({-1, pass.models * shape_.in.channels});
}

/// Returns a parameter or running statistic of all models, [K * channels]; a view if K = 1.
at::Tensor normalization_layer::parameters(const layer_pass& pass, std::int64_t offset) const {
  return parameter_view(pass, offset, 1, shape_.in.channels).reshape({-1});
}

// @param kept set in training only, [2, K * channels]: mean and 1 / sqrt(variance + epsilon) of every channel
void normalization_layer::composite_forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                                            at::Tensor& kept) const {
  const auto x = by_channel(pass, in), weight = parameters(pass, shape_.weight_offset),
             bias = parameters(pass, shape_.bias_offset);
  at::Tensor y, mean, variance; // the running statistics, if the pass reads or updates them
  const auto moves = pass.training ? pass.training->running_stats_updates : 0;
  const bool moved = moves > 0 && x.size(0) > 1;
  if (moved || !pass.training) {
    mean = parameters(pass, shape_.mean_offset);
    variance = parameters(pass, shape_.variance_offset);
  }
  if (pass.training) {
    reshape_buffer(kept, {2, x.size(1)}, out);
    y = at::empty_like(x);
    auto own_mean = kept[0], own_scale = kept[1];
    at::native_batch_norm_out(y, own_mean, own_scale, x, weight, bias, mean, variance, true,
                              1.0 - std::pow(1.0 - shape_.momentum, moves), shape_.epsilon);
  } else {
    y = std::get<0>(at::native_batch_norm(x, weight, bias, mean, variance, false, shape_.momentum, shape_.epsilon));
  }
  if (moved && pass.models > 1) { // with several models, `mean` and `variance` are updated copies
    pass.weights.narrow(1, shape_.mean_offset, shape_.in.channels).copy_(mean.view({pass.models, -1}));
    pass.weights.narrow(1, shape_.variance_offset, shape_.in.channels).copy_(variance.view({pass.models, -1}));
  }
  const auto shown = y.view({-1, pass.models, shape_.in.channels});
  auto into = out.view({pass.models, -1, shape_.in.channels}).transpose(0, 1);
  if (shape_.after == activation::relu)
    at::clamp_min_out(into, shown, 0);
  else
    into.copy_(shown);
}

void normalization_layer::composite_backward(const layer_pass& pass, const backward_data& data,
                                             const gradient_sink& sink) const {
  const auto d_shown = shape_.after == activation::relu ? at::threshold_backward(data.d_out, data.out, 0) : data.d_out;
  at::Tensor mean, variance, own_mean, own_scale; // running statistics in evaluation mode; statistics of the step in
                                                  // training mode
  if (pass.training) {
    own_mean = data.kept[0];
    own_scale = data.kept[1];
  } else {
    mean = parameters(pass, shape_.mean_offset);
    variance = parameters(pass, shape_.variance_offset);
  }
  const auto [d_in, d_weight, d_bias] = at::native_batch_norm_backward(
      by_channel(pass, d_shown), by_channel(pass, data.in), parameters(pass, shape_.weight_offset), mean, variance,
      own_mean, own_scale, pass.training != nullptr, shape_.epsilon, {data.d_in != nullptr, !data.fixed, !data.fixed});
  if (data.d_in)
    data.d_in->view({pass.models, -1, shape_.in.channels})
        .transpose(0, 1)
        .copy_(d_in.view({-1, pass.models, shape_.in.channels}));
  if (data.fixed)
    return;
  write_gradients(sink, shape_.weight_offset, d_weight.view({pass.models, -1}));
  write_gradients(sink, shape_.bias_offset, d_bias.view({pass.models, -1}));
}

} // namespace mneme
