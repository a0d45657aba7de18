// Convolutions and batch normalisation on devices: LibTorch's operators, with gradients by hand. No graph is kept for
// them; all other layers are functions there.
#include "runtime/models/composite_convolution.hpp"
#include "runtime/models/normalisation.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/threshold_backward.h>
#include <cmath>
namespace mneme {

// -- convolutions: one model after the other --------------------------------------------------------------------------

namespace {

/// Model k's part of `whole` [K, B, floats of an image] as LibTorch takes images: [B, channels, height, width].
at::Tensor images_of_model(const at::Tensor& whole, std::int64_t k, const image_shape& image) {
  return whole[k].view({whole.size(1), image.height, image.width, image.channels}).permute({0, 3, 1, 2});
}

} // namespace

at::Tensor composite_convolution::filters_of(const layer_pass& pass, std::int64_t k) const {
  return pass.weights_row(k)
      .narrow(0, weight_offset, kernel * kernel * in.channels * out.channels)
      .view({kernel, kernel, in.channels, out.channels})
      .permute({3, 2, 0, 1});
}

at::Tensor composite_convolution::applied(const at::Tensor& images, const at::Tensor& filters,
                                          const at::Tensor& bias) const {
  return at::convolution(images, filters, bias, {stride, stride}, {padding, padding}, {1, 1}, false, {0, 0}, 1);
}

void composite_convolution::forward(const layer_pass& pass, const at::Tensor& from, at::Tensor& into) const {
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto bias = biased() ? pass.weights_row(k).narrow(0, bias_offset, out.channels) : at::Tensor{};
    images_of_model(into, k, out).copy_(applied(images_of_model(from, k, in), filters_of(pass, k), bias));
  }
  if (after == activation::relu)
    at::relu_(into);
}

void composite_convolution::backward(const layer_pass& pass, const kernel_layer::backward_data& data,
                                     const gradient_sink& sink) const {
  if (after == activation::relu)
    data.d_out.masked_fill_(data.out <= 0, 0);
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto [d_in, d_filters, d_bias] = at::convolution_backward(
        images_of_model(data.d_out, k, out), images_of_model(data.in, k, in), filters_of(pass, k),
        at::OptionalIntArrayRef({out.channels}), {stride, stride}, {padding, padding}, {1, 1}, false, {0, 0}, 1,
        {data.d_in != nullptr, !data.fixed, biased() && !data.fixed});
    if (data.d_in && data.add)
      images_of_model(*data.d_in, k, in).add_(d_in);
    else if (data.d_in)
      images_of_model(*data.d_in, k, in).copy_(d_in);
    if (data.fixed)
      continue;
    write_gradient(sink, k, weight_offset, d_filters.permute({2, 3, 1, 0}).contiguous());
    if (biased())
      write_gradient(sink, k, bias_offset, d_bias);
  }
}

at::Tensor composite_convolution::function(const function_pass& pass, const at::Tensor& from) const {
  const auto filters = pass.weights_at(weight_offset, {kernel, kernel, in.channels, out.channels});
  const auto bias = biased() ? pass.weights_at(bias_offset, {out.channels}) : at::Tensor{};
  std::vector<at::Tensor> results;
  for (std::int64_t k = 0; k < pass.models; ++k) { // copies: each model's operands begin at a line
    const auto row = filters.size(0) == 1 ? 0 : k;
    const auto own = filters.select(0, row).permute({3, 2, 0, 1}).clone(at::MemoryFormat::Contiguous);
    const auto images = images_of_model(from.contiguous(), k, in).clone(at::MemoryFormat::Contiguous);
    const auto y = applied(images, own, biased() ? bias.select(0, row).clone() : at::Tensor{});
    results.push_back(y.permute({0, 2, 3, 1}).flatten(1));
  }
  const auto y = at::stack(results);
  return after == activation::relu ? at::relu(y) : y;
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
void normalisation_layer::composite_forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
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

void normalisation_layer::composite_backward(const layer_pass& pass, const backward_data& data,
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

} // namespace mneme
