#include "runtime/models/normalization.hpp"
#include "runtime/base/check.hpp"
#include "runtime/kernels/normalization.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/var_mean.h>
#include <cmath>
namespace mneme {
normalization_layer::normalization_layer(const shape& sizes) : shape_(sizes) {
  MNEME_CHECK(batch() || shape_.in.channels % shape_.groups == 0, shape_.in.channels, shape_.groups);
}

void normalization_layer::place_statistics(std::int64_t mean_offset, std::int64_t variance_offset) {
  shape_.mean_offset = mean_offset;
  shape_.variance_offset = variance_offset;
}

// The forward pass keeps [K, parts, 2, channels]: mean and 1 / sqrt(variance + epsilon) of every channel.

/// Computes mean, scale and variance over `rows` pixels; all channels of a group share them.
void normalization_layer::measure(const float* x, std::int64_t rows, float* mean, float* scale,
                                  double* variance) const {
  const auto channels = shape_.in.channels, group = batch() ? 1 : channels / shape_.groups;
  std::vector<double> sums(static_cast<std::size_t>(channels)), squares(sums.size());
  kernels::shifted_moments(x, rows, channels, sums.data(), squares.data());
  const auto n = static_cast<double>(rows * group);
  for (std::int64_t first = 0; first < channels; first += group) {
    double sum = 0.0, square = 0.0; // values are relative to a pivot, the first channel of the group
    for (std::int64_t c = first; c < first + group; ++c) {
      const auto i = static_cast<std::size_t>(c);
      const double shift = static_cast<double>(x[c]) - x[first];
      sum += sums[i] + static_cast<double>(rows) * shift;
      square += squares[i] + 2.0 * shift * sums[i] + static_cast<double>(rows) * shift * shift;
    }
    const double center = sum / n, spread = std::max(square / n - center * center, 0.0);
    for (std::int64_t c = first; c < first + group; ++c) {
      mean[c] = static_cast<float>(x[first] + center);
      scale[c] = static_cast<float>(1.0 / std::sqrt(spread + shape_.epsilon));
      variance[c] = spread;
    }
  }
}

void normalization_layer::take_running(const float* weights, float* mean, float* scale) const {
  for (std::int64_t c = 0; c < shape_.in.channels; ++c) {
    mean[c] = weights[shape_.mean_offset + c];
    scale[c] =
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(weights[shape_.variance_offset + c]) + shape_.epsilon));
  }
}

void normalization_layer::move_running(const layer_pass& pass, std::int64_t k, const float* mean,
                                       const double* variance, std::int64_t rows) const {
  if (rows < 2)
    return;
  float* const weights = pass.weights.mutable_data_ptr<float>() + k * pass.weights.stride(0);
  const double unbiased = static_cast<double>(rows) / static_cast<double>(rows - 1);
  const auto moves = pass.training->running_stats_updates;
  const auto move = [moves, momentum = shape_.momentum](float& running, double observed) {
    for (std::int64_t i = 0; i < moves; ++i)
      running = static_cast<float>((1.0 - momentum) * running + momentum * observed);
  };
  for (std::int64_t c = 0; c < shape_.in.channels; ++c) {
    move(weights[shape_.mean_offset + c], mean[c]);
    move(weights[shape_.variance_offset + c], variance[c] * unbiased);
  }
}

void normalization_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                                  at::Tensor& kept) const {
  if (!in.is_cpu())
    return composite_forward(pass, in, out, kept);
  const auto channels = shape_.in.channels, rows = pass.rows * shape_.in.pixels() / parts(pass);
  MNEME_CHECK(!batch() || !pass.training || pass.weights.size(0) == pass.models, pass.weights.size(0), pass.models);
  reshape_buffer(kept, {pass.models, parts(pass), 2, channels}, out);
  std::vector<double> variance(static_cast<std::size_t>(channels));
  std::vector<float> factor(static_cast<std::size_t>(channels)), shift(factor.size());
  for (std::int64_t part = 0; part < pass.models * parts(pass); ++part) {
    const auto k = part / parts(pass);
    const float* const x = in.const_data_ptr<float>() + part * rows * channels;
    const float* const w = pass.weights_of(k);
    float* const mean = kept.mutable_data_ptr<float>() + part * 2 * channels;
    float* const scale = mean + channels;
    if (own_statistics(pass))
      measure(x, rows, mean, scale, variance.data());
    else
      take_running(w, mean, scale);
    if (batch() && pass.training)
      move_running(pass, k, mean, variance.data(), rows);
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto i = static_cast<std::size_t>(c);
      factor[i] = scale[c] * w[shape_.weight_offset + c];
      shift[i] = w[shape_.bias_offset + c] - mean[c] * factor[i];
    }
    kernels::scale_columns(x, rows, channels, factor.data(), shift.data(), shape_.after == activation::relu,
                           out.mutable_data_ptr<float>() + part * rows * channels);
  }
}

// Gradient (Ioffe and Szegedy 2015, section 3): dx = scale * (g d - mean(g d) - h mean(g d h)), with the weights g and
// h = (x - mean) * scale. Means are over the n values that share statistics.
void normalization_layer::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const {
  if (!data.in.is_cpu())
    return composite_backward(pass, data, sink);
  const auto channels = shape_.in.channels, rows = pass.rows * shape_.in.pixels() / parts(pass);
  const auto group = batch() ? 1 : channels / shape_.groups;
  const auto count = static_cast<std::size_t>(channels);
  std::vector<double> sums(count), products(count), d_weight(count), d_bias(count);
  std::vector<float> factor(count), slope(count), shift(count);
  for (std::int64_t part = 0; part < pass.models * parts(pass); ++part) {
    const auto k = part / parts(pass), at = part * rows * channels;
    const float* const mean = data.kept.const_data_ptr<float>() + part * 2 * channels;
    const float* const scale = mean + channels;
    const float* const weight = pass.weights_of(k) + shape_.weight_offset;
    const kernels::normalized in{.d = data.d_out.const_data_ptr<float>() + at,
                                 .x = data.in.const_data_ptr<float>() + at,
                                 .y =
                                     shape_.after == activation::relu ? data.out.const_data_ptr<float>() + at : nullptr,
                                 .mean = mean,
                                 .rows = rows,
                                 .columns = channels};
    kernels::sum_gradients(in, sums.data(), products.data());
    for (std::size_t first = 0; first < count; first += static_cast<std::size_t>(group)) {
      double d_mean = 0.0, d_slope = 0.0; // means of g d, and of g d h
      for (auto c = first; c < first + static_cast<std::size_t>(group) && own_statistics(pass); ++c) {
        d_mean += weight[c] * sums[c] / static_cast<double>(rows * group);
        d_slope += weight[c] * products[c] * scale[c] / static_cast<double>(rows * group);
      }
      for (auto c = first; c < first + static_cast<std::size_t>(group); ++c) {
        factor[c] = scale[c] * weight[c];
        slope[c] = static_cast<float>(-d_slope * scale[c] * scale[c]);
        shift[c] = static_cast<float>(-d_mean * scale[c]);
        d_weight[c] = (part % parts(pass) == 0 ? 0.0 : d_weight[c]) + products[c] * scale[c];
        d_bias[c] = (part % parts(pass) == 0 ? 0.0 : d_bias[c]) + sums[c];
      }
    }
    if (data.d_in)
      kernels::scale_gradients(in, factor.data(), slope.data(), shift.data(),
                               data.d_in->mutable_data_ptr<float>() + at);
    if (data.fixed || (part + 1) % parts(pass) != 0)
      continue;
    float* const gradient = sink.into.mutable_data_ptr<float>() + k * sink.into.stride(0);
    const auto deliver = [&](float& to, double value) {
      to = static_cast<float>(sink.scale * value) + (sink.add ? to : 0.0F);
    };
    for (std::size_t c = 0; c < count; ++c) {
      deliver(gradient[shape_.weight_offset + static_cast<std::int64_t>(c)], d_weight[c]);
      deliver(gradient[shape_.bias_offset + static_cast<std::int64_t>(c)], d_bias[c]);
    }
  }
}

// -- as a differentiable function -------------------------------------------------------------------------------------

at::Tensor normalization_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto channels = shape_.in.channels, groups = batch() ? channels : shape_.groups;
  const auto of_channels = [&](std::int64_t offset) {
    return pass.weights_at(offset, {1, 1, groups, channels / groups});
  };
  const auto x = in.reshape({pass.models, batch() ? 1 : pass.rows, -1, groups, channels / groups});
  // Statistics of single channels are computed as column sums, because at::var_mean() reads columns one number at a
  // time.
  at::Tensor mean, variance;
  if (batch() && (pass.training || pass.statistics)) {
    mean = x.mean({2}, true);
    variance = (x - mean).square().mean({2}, true);
  } else if (!batch()) {
    std::tie(variance, mean) = at::var_mean(x, at::OptionalIntArrayRef({2, 4}), false, true);
  }
  if (batch() && pass.statistics)
    pass.statistics->push_back({.mean = mean.flatten(1),
                                .variance = variance.flatten(1),
                                .running_mean = of_channels(shape_.mean_offset).flatten(1),
                                .running_variance = of_channels(shape_.variance_offset).flatten(1),
                                .values = x.size(2),
                                .mean_offset = shape_.mean_offset,
                                .variance_offset = shape_.variance_offset,
                                .moves = pass.training != nullptr,
                                .momentum = shape_.momentum});
  if (batch() && !pass.training) {
    mean = of_channels(shape_.mean_offset);
    variance = of_channels(shape_.variance_offset);
  }
  const auto y = (x - mean) * (at::rsqrt(variance + shape_.epsilon) * of_channels(shape_.weight_offset)) +
                 of_channels(shape_.bias_offset);
  return (shape_.after == activation::relu ? at::relu(y) : y).reshape(in.sizes());
}

} // namespace mneme
