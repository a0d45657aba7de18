#include "runtime/models/normalisation.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/threshold_backward.h>
#include <ATen/ops/var_mean.h>
#include <cmath>
#include <tuple>
namespace mneme {

void normalisation_layer::composite_forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                                            at::Tensor& kept) const {
  if (batch())
    batch_forward(pass, in, out, kept);
  else
    group_forward(pass, in, out);
}

void normalisation_layer::composite_backward(const layer_pass& pass, const backward_data& data,
                                             const gradient_sink& sink) const {
  if (batch())
    batch_backward(pass, data, sink);
  else
    group_backward(pass, data, sink);
}

// -- batch normalisation: LibTorch's, with a channel for each channel of each model -----------------------------------

/// [K, B, floats of an image] -> [pixels of a model's rows, K * channels]; a view where there is one model.
at::Tensor normalisation_layer::by_channel(const layer_pass& pass, const at::Tensor& images) const {
  return images.view({pass.models, -1, shape_.in.channels})
      .transpose(0, 1)
      .reshape({-1, pass.models * shape_.in.channels});
}

/// A parameter or running statistic of all models: [K * channels]; a view where there is one model.
at::Tensor normalisation_layer::parameters(const layer_pass& pass, std::int64_t offset) const {
  return parameter_view(pass, offset, 1, shape_.in.channels).reshape({-1});
}

// kept: [2, K * channels] in training: mean, and 1 / sqrt(variance + epsilon), of every channel.
void normalisation_layer::batch_forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                                        at::Tensor& kept) const {
  const auto x = by_channel(pass, in), weight = parameters(pass, shape_.weight_offset),
             bias = parameters(pass, shape_.bias_offset);
  at::Tensor y, mean, variance; // the running statistics, where they are read or moved
  const auto moves = pass.training ? pass.training->statistics_moves : 0;
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
                              1.0 - std::pow(1.0 - momentum, moves), shape_.epsilon);
  } else {
    y = std::get<0>(at::native_batch_norm(x, weight, bias, mean, variance, false, momentum, shape_.epsilon));
  }
  if (moved && pass.models > 1) { // what moved were copies of the models' own
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

void normalisation_layer::batch_backward(const layer_pass& pass, const backward_data& data,
                                         const gradient_sink& sink) const {
  const auto d_shown = shape_.after == activation::relu ? at::threshold_backward(data.d_out, data.out, 0) : data.d_out;
  at::Tensor mean, variance, own_mean, own_scale; // the running statistics, or those of the step's rows
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

// -- group normalisation ----------------------------------------------------------------------------------------------

/// Views in which statistics are taken over axes 2 and 4: [K, rows, pixels, groups, channels of a group].
struct normalisation_layer::axes {
  std::vector<std::int64_t> sizes;
  at::Tensor x, mean, scale, weight, bias;
};

normalisation_layer::axes normalisation_layer::group_axes(const layer_pass& pass, const at::Tensor& in) const {
  const auto groups = shape_.groups, channels = shape_.in.channels / groups;
  axes shape{.sizes = {pass.models, pass.rows, shape_.in.pixels(), groups, channels}};
  const auto of_channels = [&](std::int64_t offset) {
    return parameter_view(pass, offset, groups, channels).view({pass.models, 1, 1, groups, channels});
  };
  shape.x = in.view(shape.sizes);
  shape.weight = of_channels(shape_.weight_offset);
  shape.bias = of_channels(shape_.bias_offset);
  at::Tensor variance;
  std::tie(variance, shape.mean) = at::var_mean(shape.x, at::OptionalIntArrayRef({2, 4}), 0, true);
  shape.scale = at::rsqrt(variance + shape_.epsilon);
  return shape;
}

void normalisation_layer::group_forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out) const {
  const auto axes = group_axes(pass, in);
  out.view(axes.sizes).copy_((axes.x - axes.mean) * (axes.scale * axes.weight) + axes.bias);
  if (shape_.after == activation::relu)
    at::relu_(out);
}

void normalisation_layer::group_backward(const layer_pass& pass, const backward_data& data,
                                         const gradient_sink& sink) const {
  const auto axes = group_axes(pass, data.in);
  const auto shown = shape_.after == activation::relu ? at::threshold_backward(data.d_out, data.out, 0) : data.d_out;
  const auto d = shown.view(axes.sizes), h = (axes.x - axes.mean) * axes.scale;
  const auto d_weight = (d * h).sum({1, 2}), d_bias = d.sum({1, 2});
  if (data.d_in) {
    auto d_in = d * axes.weight;
    d_in = d_in - d_in.mean({2, 4}, true) - h * (d_in * h).mean({2, 4}, true);
    data.d_in->view(axes.sizes).copy_(d_in * axes.scale);
  }
  if (data.fixed)
    return;
  write_gradients(sink, shape_.weight_offset, d_weight);
  write_gradients(sink, shape_.bias_offset, d_bias);
}

} // namespace mneme
