#include "runtime/models/sampling_layer.hpp"
#include "runtime/base/check.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
namespace mneme {
namespace {

// Axes: K models, B rows, D values of a sample.

/// Draws the noise e of one model, [B, D].
void draw_noise(const rng_key& key, float* noise, std::int64_t values) {
  rng_stream draw(key);
  for (std::int64_t i = 0; i < values; ++i)
    noise[i] = static_cast<float>(draw.normal());
}

} // namespace

/// Draws the noise e of all models, [K, B, D] on a CPU.
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

at::Tensor sampling_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto mean = in.narrow(2, 0, shape_.width);
  if (!pass.training)
    return mean;
  const auto log_deviations = in.narrow(2, shape_.width, shape_.width).clamp(shape_.low, shape_.high);
  return mean + by_element(log_deviations, [](const at::Tensor& values) { return at::exp(values); }) *
                    noise_of(*pass.training, mean.sizes()).to(in.options());
}

} // namespace mneme
