#include "runtime/models/sampling_layer.hpp"
#include "runtime/base/check.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
namespace mneme {
namespace {

// Axes: K models, B rows, D values of a sample.

/// e of model k, [B, D].
void draw_noise(const rng_key& key, float* noise, std::int64_t values) {
  rng_stream draw(key);
  for (std::int64_t i = 0; i < values; ++i)
    noise[i] = static_cast<float>(draw.normal());
}

} // namespace

/// e of all models, [K, B, D] on a CPU.
at::Tensor sampling_layer::noise_of(const training_mode& training, at::IntArrayRef sizes) const {
  MNEME_CHECK(std::ssize(training.streams) == sizes[0], sizes);
  auto noise = at::empty(sizes, at::kFloat);
  const auto values = sizes[1] * sizes[2];
  for (std::int64_t k = 0; k < sizes[0]; ++k) {
    auto key = training.streams[static_cast<std::size_t>(k)];
    key.index = key.index << 8U | shape_.number;
    draw_noise(key, noise.mutable_data_ptr<float>() + k * values, values);
  }
  return noise;
}

void sampling_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const {
  const auto mean = in.narrow(2, 0, shape_.width);
  if (!pass.training) {
    out.copy_(mean);
    return;
  }
  kept = noise_of(*pass.training, out.sizes()).to(in.device());
  for (std::int64_t k = 0; k < pass.models; ++k) { // one by one: the bits of exp() may depend on a value's place
    const auto deviation = log_deviation(in, k).clamp(shape_.low, shape_.high).exp_();
    out.select(0, k).copy_(mean.select(0, k) + deviation * kept.select(0, k));
  }
}

at::Tensor sampling_layer::log_deviation(const at::Tensor& in, std::int64_t k) const {
  return in.select(0, k).narrow(1, shape_.width, shape_.width).contiguous(); // [B, D]
}

/// dz/dmu = 1, dz/dl = exp(l) e within the bounds of l.
void sampling_layer::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& /*sink*/) const {
  if (!data.d_in)
    return;
  data.d_in->narrow(2, 0, shape_.width).copy_(data.d_out);
  auto d_logs = data.d_in->narrow(2, shape_.width, shape_.width);
  for (std::int64_t k = 0; k < pass.models; ++k) {
    auto d_log = d_logs.select(0, k);
    if (!pass.training) {
      d_log.zero_();
      continue;
    }
    const auto log = log_deviation(data.in, k);
    const auto outside = (log < shape_.low).logical_or_(log > shape_.high);
    d_log.copy_((data.d_out.select(0, k) * data.kept.select(0, k) * log.exp()).masked_fill_(outside, 0));
  }
}

// -- as a function ----------------------------------------------------------------------------------------------------

at::Tensor sampling_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto mean = in.narrow(2, 0, shape_.width);
  if (!pass.training)
    return mean;
  const auto log_deviations = in.narrow(2, shape_.width, shape_.width).clamp(shape_.low, shape_.high);
  return mean + by_element(log_deviations, [](const at::Tensor& values) { return at::exp(values); }) *
                    noise_of(*pass.training, mean.sizes()).to(in.options());
}

} // namespace mneme
